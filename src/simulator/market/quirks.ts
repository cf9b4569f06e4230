/** Every choice that the specification leaves open to the service, as a switch. */
export interface Quirks {
  /** What stands in `nextId` on the last page: null, an empty text, nothing at all, or the last record's own id. */
  lastPage: "null" | "empty" | "absent" | "own-id";
  /** Whether the record that `startAfter` names is itself the first of the page. */
  cursor: "exclusive" | "inclusive";
  /** Whether `size` counts beside `startAfter`: always, only where a `timestamp` is given too, or never. */
  sizeBesideStartAfter: "honoured" | "needs-timestamp" | "ignored";
  /** How a cursor is answered whose record is unknown or has left the window. */
  deadCursor: "404" | "400" | "empty";
  /** UUIDs, or long ids with a slash, a percent sign and letters beyond ASCII. */
  ids: "uuid" | "opaque";
  /** Decimals as JSON strings or as JSON numbers. */
  decimals: "string" | "number";
  /** Properties that no document names stand in every record. */
  extraProperties: boolean;
  /** The order of properties differs from record to record. */
  reorderedProperties: boolean;
  /** How many tickers one answer of /exchange-ticker holds; 0: all of them. */
  exchangeTickerPage: number;
  /** Digits of the fraction of a second in timestamps. */
  fractionDigits: 0 | 3 | 6;
  /** Whether the `timestamp` of /ohlcv is compared with a bar's start or its end. */
  ohlcvTimestamp: "start" | "end";
  /** A bar's endTimestamp: one millisecond before midnight, or midnight. */
  barEnd: "23:59:59.999" | "midnight";
  /** Whether a bar also carries `timestamp` (its start). */
  barTimestamp: boolean;
  /** Whether a record at exactly `timestamp` is among those "up to" it. */
  upperBound: "inclusive" | "exclusive";
  /** Whether today's unfinished bar is served. */
  partialBar: boolean;
  /** How an index without any data is answered. */
  noData: "404" | "empty";
  /** So many of a thousand index ticks become visible only so many seconds after their time. */
  late: { readonly perMille: number; readonly seconds: number };
  /** So many of a thousand index ticks do not exist. */
  missingPerMille: number;
  /** So many of a thousand index ticks first show another price, and the right one so many minutes later. */
  corrections: { readonly perMille: number; readonly minutes: number };
  /** A new token for every request, or the same one, with its remaining seconds, while it lives. */
  tokenReissue: "new" | "same";
  /** Tokens with letters that want encoding in a URL. */
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
  late: { perMille: 0, seconds: 0 },
  missingPerMille: 0,
  corrections: { perMille: 0, minutes: 0 },
  tokenReissue: "new",
  awkwardTokens: false,
};
