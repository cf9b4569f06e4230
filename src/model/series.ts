/** The streams, by the names that SQL, flags, JSON and metrics use. */
export const streams = [
  "assets",
  "markets",
  "exchanges",
  "derivative_contracts",
  "ohlcv",
  "index_ticks",
  "exchange_ticks",
  "market_caps",
  "derivative_ticks",
] as const;
export type Stream = (typeof streams)[number];

/** Streams with a history to walk: every second of theirs can be proven. */
export const walkedStreams = ["ohlcv", "index_ticks"] as const;
export type WalkedStream = (typeof walkedStreams)[number];

/** The index families that we ask for. Records of others are kept under the name that they came with. */
export const indexTypes = ["GWA", "MWA", "LX"] as const;
export type IndexType = (typeof indexTypes)[number];

export const derivativeTypes = ["futures", "perpetuals", "options"] as const;
export type DerivativeType = (typeof derivativeTypes)[number];

/** One line of history: all records of one index in one stream. */
export interface Series {
  readonly stream: WalkedStream;
  readonly indexType: string;
  readonly indexId: string;
}
