import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "./time.ts";

/** True where a ledger line is a series of rows; the others keep one line per subscription. */
export function isWalked(stream: Stream): stream is WalkedStream {
  return (walkedStreams as readonly Stream[]).includes(stream);
}

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

/* What the service's documentation promises in figures. */

/** How long intraday values are kept, in days. */
export const INTRADAY_DAYS = 200;
export const INTRADAY_WINDOW: Micros = INTRADAY_DAYS * MICROS_PER_DAY;
/** No intraday values are computed before this day. */
export const INTRADAY_BEGINS: Micros = Date.UTC(2019, 5, 1) * 1000;
/** How often intraday values and exchange tickers are refreshed, unless the settings say otherwise. */
export const USUAL_CADENCE: Micros = 30 * MICROS_PER_SECOND;
/** The most records of a page. */
export const LARGEST_PAGE = 2000;
