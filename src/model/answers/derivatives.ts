import type { Micros } from "../time.ts";

export interface DerivativeAsset {
  readonly asset_id: string;
  readonly symbol: string;
  readonly contracts: number;
  /** JSON array of the names of the exchanges. */
  readonly exchanges: string;
}

interface ObservedContract {
  readonly exchange: string;
  readonly expiration: Micros | null;
  readonly ts: Micros;
  readonly index_price: number | null;
}

export interface ContractQuote extends ObservedContract {
  readonly id: string;
  readonly name: string | null;
  readonly price: number | null;
  readonly open_interest_usd: number | null;
}

export interface FutureQuote extends ContractQuote {
  readonly basis: number | null;
  readonly annualised_basis: number | null;
  readonly days_to_expiry: number | null;
}

export interface PerpetualQuote extends ContractQuote {
  readonly premium: number | null;
  readonly funding_rate: number | null;
}

export interface OptionQuote extends ObservedContract {
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
