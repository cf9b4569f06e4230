import { type Selection, select } from "../../model/selector.ts";
import { type Intake, type SyncSettings, serviceNow } from "../context/context.ts";
import type { Directory } from "./directory.ts";

/** What the settings select of the exchange tickers. */
export interface ExchangeSelection {
  /** The lines of the ledger: one exchange each, or null for all of them together. */
  readonly lines: readonly (string | null)[];
  /** Markets to keep; undefined: all. */
  readonly markets: ReadonlySet<string> | undefined;
  /** False: without a ranking nobody can say which markets are meant. */
  readonly isResolved: boolean;
  readonly selections: readonly (readonly [setting: string, selection: Selection])[];
}

export function selectExchanges(
  settings: SyncSettings,
  directory: Pick<Directory, "exchanges" | "MWA" | "ranking">,
): ExchangeSelection {
  const { exchangeTickers: asked } = settings.streams;
  if (asked === false) return { lines: [], markets: undefined, isResolved: true, selections: [] };
  const exchanges = select(asked.exchanges, directory.exchanges, undefined);
  const markets = select(asked.markets, directory.MWA, directory.ranking);
  const isNone = asked.exchanges.kind === "none" || asked.markets.kind === "none";
  return {
    lines: isNone ? [] : asked.exchanges.kind === "all" ? [null] : exchanges.ids,
    markets: asked.markets.kind === "all" ? undefined : new Set(markets.ids),
    isResolved: markets.resolved,
    selections: [
      ["sync.exchangeTickers.exchanges", exchanges],
      ["sync.exchangeTickers.markets", markets],
    ],
  };
}

/**
 * Ends the observation of what the settings no longer ask for, now: a stream that is switched off is polled by nobody who
 * could say so later.
 */
export async function endDeselected(
  { client, clock, ingest, signal }: Intake,
  settings: SyncSettings,
  directory: Directory,
): Promise<void> {
  const { derivatives, marketCap } = settings.streams;
  const at = serviceNow({ client, clock });
  const tickers = selectExchanges(settings, directory);
  const followed = {
    // Without a ranking nobody can say which markets are meant; what is followed stays followed.
    exchange_ticks: tickers.isResolved ? tickers.lines : undefined,
    derivative_ticks:
      derivatives === false ? [] : select(derivatives.exchanges, directory.exchanges, undefined).ids,
    market_caps: marketCap === false ? [] : [null],
  };
  for (const stream of ["exchange_ticks", "derivative_ticks", "market_caps"] as const) {
    const exchangeIds = followed[stream];
    if (exchangeIds === undefined) continue;
    await ingest.call("commitSubscriptions", { stream, exchangeIds, at }, [], signal);
  }
}
