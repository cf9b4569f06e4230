const choice = <T extends string | number>(value: T): T => value;

/** The choices that the specification leaves open, as switches, with their defaults. */
export const defaultQuirks = {
  /** `nextId` on the last page: null, an empty string, absent, or the id of the last record. */
  lastPage: choice<"null" | "empty" | "absent" | "own-id">("null"),
  /** Whether a page begins with the record that `startAfter` names (inclusive) or after it (exclusive). */
  cursor: choice<"exclusive" | "inclusive">("exclusive"),
  /** Whether `size` has an effect beside `startAfter`: always, only with a `timestamp`, or never. */
  sizeBesideStartAfter: choice<"honoured" | "needs-timestamp" | "ignored">("needs-timestamp"),
  /** UUIDs, or long ids with a slash, a percent sign and non-ASCII letters. */
  ids: choice<"uuid" | "opaque">("uuid"),
  /** Maximum number of tickers per response of /exchange-ticker; 0: no limit. */
  exchangeTickerPage: 0,
  /** Whether the `timestamp` of /ohlcv is compared with a bar's start or its end. */
  ohlcvTimestamp: choice<"start" | "end">("start"),
  /** A bar's endTimestamp: one millisecond before midnight, or midnight. */
  barEnd: choice<"23:59:59.999" | "midnight">("23:59:59.999"),
  /** Whether a bar also carries `timestamp` (its start). */
  barTimestamp: false,
  /** Whether "up to `timestamp`" includes a record at exactly that time. */
  upperBound: choice<"inclusive" | "exclusive">("inclusive"),
  /** Whether today's unfinished bar is served. */
  partialBar: true,
  /** The response for an index without any data. */
  noData: choice<"404" | "empty" | "400">("404"),
  /** Whether a history request may have a `timestamp` in the future; if not, it gets a 400. */
  futureTimestamp: choice<"accepted" | "rejected">("accepted"),
  /** A larger `size` gets a 400. */
  maxSize: 2000,
  /** No page of a history has more rows than this, whatever its `size`. */
  maxPageRows: 2000,
  /** Whether a 400 names the parameters that it objects to. */
  fieldErrors: true,
  /** Of every thousand index ticks, `perMille` become visible only `seconds` after their timestamp. */
  late: { perMille: 0, seconds: 0 },
  /** Number of missing index ticks per thousand. */
  missingPerMille: 0,
  /** Of every thousand indices, `perMille` were listed on this day (`2026-02-27`) and have no older records. */
  listed: { perMille: 0, on: "1970-01-01" },
  /** On so many days of each week (from Thursday) there are no index ticks. */
  closedDays: 0,
  /** Of every thousand index ticks, `perMille` first have a wrong price, which is corrected after `minutes`. */
  corrections: { perMille: 0, minutes: 0 },
  /** Number of strikes that an exchange lists for each expiry of its options. */
  optionStrikes: 9,
  /** Whether a body is compressed for a client that accepts it. */
  compression: choice<"gzip" | "none">("gzip"),
  /** Tokens contain characters that must be encoded in a URL. */
  awkwardTokens: false,
};

export type Quirks = typeof defaultQuirks;
