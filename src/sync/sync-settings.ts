import type { Selector } from "../model/selector.ts";
import type { DerivativeType } from "../model/series.ts";

export interface IndexSelectors {
  readonly GWA: Selector;
  readonly MWA: Selector;
  readonly LX: Selector;
}

/** What is to be synced; `false`: not that stream. Durations are in seconds. */
export interface SyncedStreams {
  readonly lookups: { readonly every: number } | false;
  readonly ohlcv: IndexSelectors | false;
  readonly intraday: (IndexSelectors & { readonly days: number }) | false;
  readonly exchangeTickers: { readonly exchanges: Selector; readonly markets: Selector } | false;
  readonly marketCap: { readonly every: number } | false;
  readonly derivatives:
    | { readonly exchanges: Selector; readonly types: readonly DerivativeType[]; readonly every: number }
    | false;
}

export interface SyncSettings {
  readonly streams: SyncedStreams;
  /** The service's intraday cadence. */
  readonly refreshSeconds: number;
  /** Name → id, as far as the operator gave them. */
  readonly lxIndexIds: Readonly<Record<string, string>>;
  readonly concurrency: number;
  /** The ceiling on all requests; 0: none. */
  readonly maxRequestsPerSecond: number;
}
