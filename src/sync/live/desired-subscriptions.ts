import type { Subscription } from "../../service/live/subscription-states.ts";
import { readSeriesHeads } from "../../warehouse/coverage/series-queries.ts";
import { readMarketsByExchange } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncContext, SyncSettings } from "../context/context.ts";
import { type Directory, type ExchangeSelection, selectExchanges } from "../selection/targets.ts";

/** A ledger key of `exchange_ticks` and the subscriptions that cover it. */
interface ExchangeSubscriptions {
  /** Null: all exchanges. */
  readonly exchangeId: string | null;
  readonly subscriptions: readonly Subscription[];
}

/** What the live feed should subscribe to. */
export type DesiredSubscriptions = ReturnType<typeof selectDesiredSubscriptions>;

/** Resolves the settings, most important subscriptions first. */
export function selectDesiredSubscriptions(
  { settings, reader }: Pick<SyncContext, "settings" | "reader">,
  directory: Directory,
) {
  const selection = selectExchanges(settings, directory);
  return {
    indices: indexSubscriptions(settings, reader),
    exchanges: selection.isResolved ? exchangeSubscriptions(selection, directory, reader) : [],
    selection,
  };
}

/** One subscription for a whole index type if all of it is selected, else one per index. */
function indexSubscriptions(settings: SyncSettings, reader: Connection): Subscription[] {
  const { intraday } = settings.streams;
  if (intraday === false) return [];
  const headsByType = Map.groupBy(readSeriesHeads(reader, "index_ticks"), ({ indexType }) => indexType);
  return (["LX", "GWA", "MWA"] as const).flatMap((indexType): Subscription[] => {
    const { kind } = intraday[indexType];
    if (kind === "none") return [];
    if (kind === "all") return [{ source: "index", indexType }];
    return (headsByType.get(indexType) ?? []).map(({ indexId }) => ({ source: "index", indexType, indexId }));
  });
}

/** Per exchange if all markets are selected; else per market, of all exchanges or of one. */
function exchangeSubscriptions(
  { exchangeIds, markets }: ExchangeSelection,
  directory: Directory,
  reader: Connection,
): ExchangeSubscriptions[] {
  const wholeExchange = (exchangeId: string): Subscription => ({ source: "exchange", exchangeId });
  if (markets === undefined) {
    const allExchanges = directory.exchanges.map(({ id }) => wholeExchange(id));
    return exchangeIds.map((exchangeId) => ({
      exchangeId,
      subscriptions: exchangeId === null ? allExchanges : [wholeExchange(exchangeId)],
    }));
  }
  const marketsByExchange = readMarketsByExchange(reader);
  const listed = new Set([...marketsByExchange.values()].flat());
  const selected = sortByRank(markets, directory).filter(
    (marketId) => listed.size === 0 || listed.has(marketId),
  );
  return exchangeIds.map((exchangeId): ExchangeSubscriptions => {
    if (exchangeId === null)
      return { exchangeId, subscriptions: selected.map((marketId) => ({ source: "exchange", marketId })) };
    const listedHere = new Set(marketsByExchange.get(exchangeId));
    const pairs = selected.filter((marketId) => listedHere.has(marketId));
    // If it lists none of them, subscribe to the whole exchange: any tick proves that the selected markets
    // had none.
    const subscriptions = pairs.map(
      (marketId): Subscription => ({ source: "exchange", exchangeId, marketId }),
    );
    return { exchangeId, subscriptions: pairs.length > 0 ? subscriptions : [wholeExchange(exchangeId)] };
  });
}

function sortByRank(markets: ReadonlySet<string>, { MWA, ranking = [] }: Directory): string[] {
  const rankOf = new Map(ranking.map((assetId, rank) => [assetId, rank]));
  const ranks = new Map(
    MWA.map(({ id, rankingAssetId = "" }) => [id, rankOf.get(rankingAssetId) ?? Number.MAX_SAFE_INTEGER]),
  );
  return [...markets].sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
}
