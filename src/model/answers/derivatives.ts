import type { Micros } from "../time.ts";

export interface DerivativeAsset {
  readonly asset_id: string;
  readonly symbol: string;
  readonly contracts: number;
  /** JSON array of the names of the exchanges. */
  readonly exchanges: string;
}

export interface ContractQuote {
  readonly id: string;
  readonly name: string | null;
  readonly exchange: string;
  readonly expiration: Micros | null;
  readonly ts: Micros;
  readonly price: number | null;
  readonly index_price: number | null;
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

export interface OptionQuote extends ContractQuote {
  readonly option_type: string | null;
  readonly strike: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  readonly mark_price: number | null;
  readonly open_interest: number | null;
}

export interface DerivativesResult {
  readonly at: Micros;
  /** The newest observation of any contract at that moment; null if there is none. */
  readonly observed: Micros | null;
  readonly futures: readonly FutureQuote[];
  readonly perpetuals: readonly PerpetualQuote[];
  readonly options: readonly OptionQuote[];
}
