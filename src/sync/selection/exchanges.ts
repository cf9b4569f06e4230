import { resolveSelector, type Selection } from "../../model/selector.ts";
import type { Micros } from "../../model/time.ts";
import { type SyncContext, type SyncSettings, serviceNow } from "../context/context.ts";
import type { Directory } from "./directory.ts";
import { resolveTargets, type SelectorNotice, selectorNotices } from "./targets.ts";

/** The selected exchange tickers. */
export interface ExchangeSelection {
  /** One id per ledger key; a single null means one key for all exchanges together. */
  readonly exchangeIds: readonly (string | null)[];
  /** Markets to store; undefined: all. */
  readonly markets: ReadonlySet<string> | undefined;
  /** False if the markets of the selector are not known. */
  readonly isResolved: boolean;
  readonly selections: readonly (readonly [setting: string, selection: Selection])[];
}

export function selectExchanges(
  settings: SyncSettings,
  directory: Pick<Directory, "exchanges" | "MWA" | "ranking">,
): ExchangeSelection {
  const { exchangeTickers: selectors } = settings.streams;
  if (selectors === false) return { exchangeIds: [], markets: undefined, isResolved: true, selections: [] };
  const exchanges = resolveSelector(selectors.exchanges, directory.exchanges, undefined);
  const markets = resolveSelector(selectors.markets, directory.MWA, directory.ranking);
  const isNone = selectors.exchanges.kind === "none" || selectors.markets.kind === "none";
  const exchangeIds = isNone ? [] : selectors.exchanges.kind === "all" ? [null] : exchanges.ids;
  return {
    exchangeIds,
    markets: selectors.markets.kind === "all" ? undefined : new Set(markets.ids),
    isResolved: selectors.markets.kind === "all" || markets.missing === null,
    selections: [
      ["sync.exchangeTickers.exchanges", exchanges],
      ["sync.exchangeTickers.markets", markets],
    ],
  };
}

/** Ends the targets of deselected snapshot keys. No poller would do so, because a switched-off stream has none. */
export async function endDeselectedSnapshots(
  { client, clock, ingest, signal }: SyncContext,
  settings: SyncSettings,
  directory: Directory,
): Promise<void> {
  const { derivatives, marketCap } = settings.streams;
  const at = serviceNow({ client, clock });
  const tickers = selectExchanges(settings, directory);
  const selectedIds = {
    // Markets that cannot be resolved without a ranking end no targets.
    exchange_ticks: tickers.isResolved ? tickers.exchangeIds : undefined,
    derivative_ticks:
      derivatives === false ? [] : resolveSelector(derivatives.exchanges, directory.exchanges, undefined).ids,
    market_caps: marketCap === false ? [] : [null],
  };
  for (const stream of ["exchange_ticks", "derivative_ticks", "market_caps"] as const) {
    const exchangeIds = selectedIds[stream];
    if (exchangeIds === undefined) continue;
    await ingest.call("commitSnapshotTargets", { stream, exchangeIds, at }, signal);
  }
}

/** What is wrong with any selector in the settings. */
export function collectNotices(settings: SyncSettings, directory: Directory, now: Micros): SelectorNotice[] {
  const { derivatives } = settings.streams;
  const selections = [...selectExchanges(settings, directory).selections];
  if (derivatives !== false) {
    const chosen = resolveSelector(derivatives.exchanges, directory.exchanges, undefined);
    selections.push(["sync.derivatives.exchanges", chosen]);
  }
  return [
    ...resolveTargets(settings, directory, now).notices,
    ...selections.flatMap(([setting, chosen]) => selectorNotices(setting, chosen)),
  ];
}
