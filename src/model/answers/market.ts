import type { Micros } from "../time.ts";

/** One asset of the ranking as a tuple: a response has thousands. */
export type RankedAsset = readonly [
  id: string,
  symbol: string,
  name: string | null,
  rank: number | null,
  price: number | null,
  /** Of 24 hours, in USD. */
  volume: number | null,
  marketCap: number | null,
  change24h: number | null,
  change7d: number | null,
  change30d: number | null,
  ts: Micros,
];

/** The last 168 hours: the minute of each point and its price, scaled to 0–100, in turn. */
export type Sparkline = readonly number[];

export interface RankingResult {
  readonly assets: readonly RankedAsset[];
  /** By asset id. */
  readonly sparklines: Readonly<Record<string, Sparkline>>;
}

export interface PairSummary {
  readonly pair: string;
  readonly exchanges: number;
}

export interface ExchangeSummary {
  readonly name: string;
  /** How many pairs of it are synced. */
  readonly pairs: number;
  /** The one that the most exchanges quote; null: none is synced. */
  readonly pair: string | null;
}

export interface Quote {
  readonly exchange: string;
  readonly last: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  readonly spread_bps: number | null;
  readonly index_price: number | null;
  /** `MWA`, or `GWA` for the USD prices of both assets divided. */
  readonly index_source: string | null;
  readonly index_ts: Micros | null;
  readonly deviation_bps: number | null;
  /** Of 24 hours. */
  readonly volume_usd: number | null;
  readonly ts: Micros;
  readonly is_live: 0 | 1;
  /** It has not moved for an hour, and does not compete for the best. */
  readonly is_still: 0 | 1;
}

export interface BestPrices {
  readonly best_bid: number | null;
  readonly best_bid_exchange: string | null;
  readonly best_ask: number | null;
  readonly best_ask_exchange: string | null;
  /** Including stale quotes. */
  readonly best_bid_any: number | null;
  readonly best_ask_any: number | null;
}

export interface SpreadPoint {
  readonly ts: Micros;
  /** Null: no exchange bid or asked. */
  readonly bps: number | null;
}

export interface DerivativeAsset {
  readonly asset_id: string;
  readonly symbol: string;
  readonly contracts: number;
  /** JSON array of the names of the exchanges. */
  readonly exchanges: string;
}

export interface ObservedContract {
  readonly exchange: string;
  readonly expiration: Micros | null;
  readonly ts: Micros;
}

export interface FutureQuote extends ObservedContract {
  readonly annualised_basis: number | null;
}

export interface OptionQuote extends ObservedContract {
  readonly index_price: number | null;
  readonly option_type: string | null;
  readonly strike: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  /** The mark price, else the last price. */
  readonly worth: number | null;
  readonly forward: number | null;
  readonly implied_volatility: number | null;
  readonly open_interest: number | null;
}
