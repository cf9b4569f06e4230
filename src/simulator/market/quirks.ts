/** The choices that the specification leaves open, as switches. */
export interface Quirks {
  /** `nextId` on the last page: null, an empty string, absent, or the id of the last record. */
  lastPage: "null" | "empty" | "absent" | "own-id";
  /** Whether a page begins with the record that `startAfter` names (inclusive) or after it (exclusive). */
  cursor: "exclusive" | "inclusive";
  /** Whether `size` has an effect beside `startAfter`: always, only with a `timestamp`, or never. */
  sizeBesideStartAfter: "honoured" | "needs-timestamp" | "ignored";
  /** The response to a cursor whose record is unknown or has left the window. */
  deadCursor: "404" | "400" | "empty";
  /** UUIDs, or long ids with a slash, a percent sign and non-ASCII letters. */
  ids: "uuid" | "opaque";
  /** Decimals as JSON strings or as JSON numbers. */
  decimals: "string" | "number";
  /** Every record has undocumented properties. */
  extraProperties: boolean;
  /** The order of properties differs from record to record. */
  reorderedProperties: boolean;
  /** Maximum number of tickers per response of /exchange-ticker; 0: no limit. */
  exchangeTickerPage: number;
  /** Number of digits of the fraction of a second in timestamps. */
  fractionDigits: 0 | 3 | 6;
  /** Whether the `timestamp` of /ohlcv is compared with a bar's start or its end. */
  ohlcvTimestamp: "start" | "end";
  /** A bar's endTimestamp: one millisecond before midnight, or midnight. */
  barEnd: "23:59:59.999" | "midnight";
  /** Whether a bar also carries `timestamp` (its start). */
  barTimestamp: boolean;
  /** Whether "up to `timestamp`" includes a record at exactly that time. */
  upperBound: "inclusive" | "exclusive";
  /** Whether today's unfinished bar is served. */
  partialBar: boolean;
  /** The response for an index without any data. */
  noData: "404" | "empty" | "400";
  /** What is sent for a list without records: the list, `content` null, 204, or an object without `content`. */
  emptyList: "list" | "null" | "204" | "absent";
  /** Whether a history request may have a `timestamp` in the future; if not, it gets a 400. */
  futureTimestamp: "accepted" | "rejected";
  /** A larger `size` gets a 400. */
  maxSize: number;
  /** No page of a history has more rows than this, whatever its `size`. */
  maxPageRows: number;
  /** Whether a 400 names the parameters that it objects to. */
  fieldErrors: boolean;
  /** Of every thousand index ticks, `perMille` become visible only `seconds` after their timestamp. */
  late: { readonly perMille: number; readonly seconds: number };
  /** Number of missing index ticks per thousand. */
  missingPerMille: number;
  /** Of every thousand indices, `perMille` were listed on this day (`2026-02-27`) and have no older records. */
  listed: { readonly perMille: number; readonly on: string };
  /** Index ticks exist only at every n-th refresh. */
  everyNthTick: number;
  /** On so many days of each week (from Thursday) there are no index ticks. */
  closedDays: number;
  /** Of every thousand index ticks, `perMille` first have a wrong price, which is corrected after `minutes`. */
  corrections: { readonly perMille: number; readonly minutes: number };
  /** Number of strikes that an exchange lists for each expiry of its options. */
  optionStrikes: number;
  /** A new token per request, or the same one (with its remaining seconds) until it expires. */
  tokenReissue: "new" | "same";
  /** Whether a body is compressed for a client that accepts it. */
  compression: "gzip" | "none";
  /** Tokens contain characters that must be encoded in a URL. */
  awkwardTokens: boolean;
}

export const defaultQuirks: Quirks = {
  lastPage: "null",
  cursor: "exclusive",
  sizeBesideStartAfter: "needs-timestamp",
  deadCursor: "404",
  ids: "uuid",
  decimals: "string",
  extraProperties: false,
  reorderedProperties: false,
  exchangeTickerPage: 0,
  fractionDigits: 3,
  ohlcvTimestamp: "start",
  barEnd: "23:59:59.999",
  barTimestamp: false,
  upperBound: "inclusive",
  partialBar: true,
  noData: "404",
  emptyList: "list",
  futureTimestamp: "accepted",
  maxSize: 2000,
  maxPageRows: 2000,
  fieldErrors: true,
  late: { perMille: 0, seconds: 0 },
  missingPerMille: 0,
  listed: { perMille: 0, on: "1970-01-01" },
  everyNthTick: 1,
  closedDays: 0,
  corrections: { perMille: 0, minutes: 0 },
  optionStrikes: 9,
  tokenReissue: "new",
  compression: "gzip",
  awkwardTokens: false,
};
