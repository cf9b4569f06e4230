import type { Subscription } from "../../service/live/messages.ts";
import { followedHeads } from "../../warehouse/coverage/gaps.ts";
import { marketsByExchange } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import type { Directory } from "../selection/directory.ts";
import { type ExchangeSelection, selectExchanges } from "../selection/exchanges.ts";

/** A ledger line of the exchange tickers, and the subscriptions that it takes to hear all of it. */
export interface ExchangeLine {
  /** Null: every exchange. */
  readonly exchangeId: string | null;
  readonly subscriptions: readonly Subscription[];
}

/** What is to be heard live. */
export interface LiveWishes {
  readonly indices: readonly Subscription[];
  readonly exchanges: readonly ExchangeLine[];
  readonly selection: ExchangeSelection;
}

/** What the settings ask of the live feed at present, the few and important first. */
export function liveWishes(settings: SyncSettings, directory: Directory, reader: Connection): LiveWishes {
  const selection = selectExchanges(settings, directory);
  return {
    indices: indexSubscriptions(settings, reader),
    exchanges: selection.isResolved ? exchangeLines(selection, directory, reader) : [],
    selection,
  };
}

/** A whole family where all of it is selected, single indices otherwise. */
function indexSubscriptions(settings: SyncSettings, reader: Connection): Subscription[] {
  const { intraday } = settings.streams;
  if (intraday === false) return [];
  const followed = Map.groupBy(followedHeads(reader, "index_ticks"), ({ indexType }) => indexType);
  return (["LX", "GWA", "MWA"] as const).flatMap((indexType): Subscription[] => {
    const { kind } = intraday[indexType];
    if (kind === "none") return [];
    if (kind === "all") return [{ source: "index", indexType }];
    return (followed.get(indexType) ?? []).map(({ indexId }) => ({ source: "index", indexType, indexId }));
  });
}

/** A whole exchange where all markets are selected; a market of all exchanges; or one market of one exchange. */
function exchangeLines(
  { lines, markets }: ExchangeSelection,
  directory: Directory,
  reader: Connection,
): ExchangeLine[] {
  const whole = (exchangeId: string): Subscription => ({ source: "exchange", exchangeId });
  if (markets === undefined) {
    const every = directory.exchanges.map(({ id }) => whole(id));
    return lines.map((exchangeId) => ({
      exchangeId,
      subscriptions: exchangeId === null ? every : [whole(exchangeId)],
    }));
  }
  const listings = marketsByExchange(reader);
  const listed = new Set([...listings.values()].flat());
  const chosen = byRank(markets, directory).filter((marketId) => listed.size === 0 || listed.has(marketId));
  return lines.map((exchangeId): ExchangeLine => {
    if (exchangeId === null)
      return { exchangeId, subscriptions: chosen.map((marketId) => ({ source: "exchange", marketId })) };
    const own = new Set(listings.get(exchangeId));
    const pairs = chosen.filter((marketId) => own.has(marketId));
    // Of an exchange that lists none of them, any tick shows that there was nothing to hear.
    const subscriptions = pairs.map(
      (marketId): Subscription => ({ source: "exchange", exchangeId, marketId }),
    );
    return { exchangeId, subscriptions: pairs.length > 0 ? subscriptions : [whole(exchangeId)] };
  });
}

function byRank(markets: ReadonlySet<string>, { MWA, ranking = [] }: Directory): string[] {
  const rankOf = new Map(ranking.map((assetId, rank) => [assetId, rank]));
  const ranks = new Map(
    MWA.map(({ id, rankedBy = "" }) => [id, rankOf.get(rankedBy) ?? Number.MAX_SAFE_INTEGER]),
  );
  return [...markets].sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
}
