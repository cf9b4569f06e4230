import type { Decimal } from "./decimal.ts";
import type { Micros } from "./time.ts";

/**
 * What the service's records say, once read. A field that the record lacked is null, and so is a figure that could
 * not be read; `quality` then says which and why. Enum-like fields are text as it came: the service may add values.
 */
interface Kept {
  /** What is doubtful about the record, in words, with the raw value; null when nothing is. */
  readonly quality: string | null;
  /** Properties that this version does not know, as a JSON object with sorted keys; null when there are none. */
  readonly extra: string | null;
}

export interface Asset extends Kept {
  readonly id: string;
  readonly name: string | null;
  readonly symbol: string | null;
  readonly status: string | null;
  readonly type: string | null;
  readonly url: string | null;
  readonly contractAddress: string | null;
}

export interface Market extends Kept {
  readonly id: string;
  readonly baseAssetId: string | null;
  readonly quoteAssetId: string | null;
}

export interface ExchangeMarket {
  readonly marketId: string;
  readonly status: string | null;
  readonly qualified: boolean | null;
  readonly extra: string | null;
}

export interface ExchangeSymbol {
  readonly assetId: string;
  readonly symbol: string | null;
  readonly extra: string | null;
}

export interface Exchange extends Kept {
  readonly id: string;
  readonly name: string | null;
  readonly url: string | null;
  readonly status: string | null;
  readonly markets: readonly ExchangeMarket[];
  readonly symbols: readonly ExchangeSymbol[];
}

/** Without the record's own id, which is never stored: a walk's cursor is the page's `nextId`. */
export interface IndexTick extends Kept {
  readonly indexType: string;
  readonly indexId: string;
  readonly ts: Micros;
  readonly price: Decimal | null;
  /** Rolling 24-hour figure. */
  readonly volume: Decimal | null;
  /** LX only. */
  readonly tickVolume: Decimal | null;
  /** LX on the websocket only. */
  readonly name: string | null;
}

export interface DailyBar extends Kept {
  readonly recordId: string | null;
  readonly indexType: string;
  readonly indexId: string;
  /** Midnight at which the day that the bar covers begins. */
  readonly start: Micros;
  readonly open: Decimal | null;
  readonly high: Decimal | null;
  readonly low: Decimal | null;
  readonly close: Decimal | null;
  readonly volume: Decimal | null;
  readonly volumeUsd: Decimal | null;
  readonly vwap: Decimal | null;
  readonly twap: Decimal | null;
}

export interface ExchangeTick extends Kept {
  readonly recordId: string | null;
  readonly exchangeId: string;
  readonly marketId: string;
  readonly ts: Micros;
  readonly last: Decimal | null;
  readonly bid: Decimal | null;
  readonly ask: Decimal | null;
  readonly volume: Decimal | null;
  readonly lastMoved: Micros | null;
}

export interface MarketCap extends Kept {
  readonly recordId: string | null;
  readonly assetId: string;
  readonly ts: Micros;
  readonly rank: number | null;
  readonly volumeRank: number | null;
  readonly price: Decimal | null;
  readonly volume: Decimal | null;
  readonly marketCap: Decimal | null;
  readonly totalMarketCap: Decimal | null;
  readonly freeFloatSupply: Decimal | null;
  readonly totalSupply: Decimal | null;
  /** Percent change of the market capitalisation; the other families of percent changes go to `extra`. */
  readonly change24h: Decimal | null;
  readonly change7d: Decimal | null;
  readonly change30d: Decimal | null;
}

export interface DerivativeContract extends Kept {
  readonly id: string;
  readonly derivativeType: string;
  readonly exchangeId: string | null;
  readonly marketId: string | null;
  readonly exchangeName: string | null;
  readonly settlementCurrency: string | null;
  readonly contractValue: Decimal | null;
  readonly valueCurrency: string | null;
  readonly optionType: string | null;
  readonly optionStrike: Decimal | null;
  readonly listing: Micros | null;
  readonly expiration: Micros | null;
}

export interface DerivativeTick extends Kept {
  readonly recordId: string | null;
  readonly contractId: string;
  readonly derivativeType: string;
  readonly exchangeId: string | null;
  readonly marketId: string | null;
  readonly ts: Micros;
  readonly price: Decimal | null;
  readonly volume: Decimal | null;
  readonly volumeUsd: Decimal | null;
  readonly openInterest: Decimal | null;
  readonly openInterestUsd: Decimal | null;
  readonly bid: Decimal | null;
  readonly ask: Decimal | null;
  readonly indexPrice: Decimal | null;
  readonly markPrice: Decimal | null;
  readonly fundingRate: Decimal | null;
}

/** The record type of each stream. */
export interface StreamRecords {
  assets: Asset;
  markets: Market;
  exchanges: Exchange;
  derivative_contracts: DerivativeContract;
  ohlcv: DailyBar;
  index_ticks: IndexTick;
  exchange_ticks: ExchangeTick;
  market_caps: MarketCap;
  derivative_ticks: DerivativeTick;
}

/** A record that could not be read at all, kept verbatim. */
export interface Reject {
  readonly reason: string;
  readonly raw: string;
}

/** A property that this version does not know, counted where it was met. */
export interface UnknownField {
  readonly name: string;
  readonly count: number;
  readonly sample: string;
}
