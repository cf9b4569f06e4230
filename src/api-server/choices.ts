export const choice = <T extends string | number>(value: T): T => value;

/** What the specification leaves open to the server, as switches, with their defaults. */
export const defaultChoices = {
  /** `nextId` on the last page: null, an empty string, absent, or the id of the last record. */
  lastPage: choice<"null" | "empty" | "absent" | "own-id">("null"),
  /** Whether a page begins with the record that `startAfter` names (inclusive) or after it (exclusive). */
  cursor: choice<"exclusive" | "inclusive">("exclusive"),
  /** Whether `size` has an effect beside `startAfter`: always, only with a `timestamp`, or never. */
  sizeBesideStartAfter: choice<"honoured" | "needs-timestamp" | "ignored">("needs-timestamp"),
  /** UUIDs, or ids of any form. */
  ids: choice<"uuid" | "opaque">("uuid"),
  /** Maximum number of tickers per response of /exchange-ticker; 0: no limit. */
  exchangeTickerPage: 0,
  /** Whether "up to `timestamp`" includes a record at exactly that time. */
  upperBound: choice<"inclusive" | "exclusive">("inclusive"),
  /** The response for an index without data. */
  noData: choice<"404" | "empty" | "400">("404"),
  /** Whether a history request may have a `timestamp` in the future; if not, it gets a 400. */
  futureTimestamp: choice<"accepted" | "rejected">("accepted"),
  /** A larger `size` gets a 400. */
  maxSize: 2000,
  /** No page of a history has more rows than this, whatever its `size`. */
  maxPageRows: 2000,
  /** Whether a 400 names the parameters that it objects to. */
  fieldErrors: true,
  /** Whether a body is compressed for a client that accepts it. */
  compression: choice<"gzip" | "none">("gzip"),
};

export type Choices = typeof defaultChoices;
