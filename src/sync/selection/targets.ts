import type { SeriesTarget } from "../../ingest/commit/targets.ts";
import type { Asset } from "../../model/records.ts";
import { resolveSelector, type SelectorCandidate } from "../../model/selector.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import {
  type HistoryStream,
  INTRADAY_BEGINS,
  INTRADAY_DAYS,
  INTRADAY_WINDOW,
  settleDelay,
} from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { StreamRules } from "../../warehouse/coverage/targets.ts";
import {
  readListedAssets,
  readListedExchanges,
  readListedMarkets,
} from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type IndexSelectors, type SyncContext, type SyncSettings, serviceNow } from "../context/context.ts";

/** The first crypto markets opened in 2010, so no daily bar can be older. */
const OHLCV_HISTORY_START: Micros = Date.UTC(2010, 0, 1) * MICROS_PER_MS;

/** The targets of one history stream. */
export type StreamTargets = ReturnType<typeof resolveTargets>[number];

/** Resolves the selectors of the history streams at `now` (service time). */
export function resolveTargets(settings: SyncSettings, directory: Directory, now: Micros) {
  const { ohlcv, intraday } = settings.streams;
  const delay = settleDelay(settings.refreshSeconds);
  const resolveStream = (
    stream: HistoryStream,
    selectors: IndexSelectors | false,
    from: Micros,
    rules: StreamRules,
  ) => {
    /** Index types whose selector cannot be resolved now. */
    const unresolved: IndexType[] = [];
    const targets: SeriesTarget[] = [];
    for (const indexType of indexTypes) {
      const selector = selectors ? selectors[indexType] : ({ kind: "none" } as const);
      const selection = resolveSelector(selector, directory[indexType], directory.ranking);
      if (selection.missing) unresolved.push(indexType);
      for (const indexId of selection.ids)
        targets.push({ indexType, indexId, from, ...liquidName(indexType, indexId) });
    }
    /** `from`: where the target of a series of this stream begins. */
    return { stream, targets, rules, from, unresolved };
  };
  const liquidName = (indexType: IndexType, indexId: string) => {
    if (indexType !== "LX") return {};
    const name = Object.entries(settings.lxIndexIds).find(([, id]) => id === indexId)?.[0];
    if (name !== undefined) return { name };
    const matchedName = directory.matchedNames?.get(indexId);
    return matchedName === undefined ? {} : { matchedName };
  };
  const days = intraday === false ? INTRADAY_DAYS : intraday.days;
  const intradayFrom = Math.max(INTRADAY_BEGINS, now - Math.min(INTRADAY_WINDOW, days * MICROS_PER_DAY));
  return [
    resolveStream("index_ticks", intraday, intradayFrom, {
      settleDelay: delay,
      period: settings.refreshSeconds * MICROS_PER_SECOND,
      step: 1,
      serviceWindow: INTRADAY_WINDOW,
    }),
    resolveStream("ohlcv", ohlcv, OHLCV_HISTORY_START, {
      settleDelay: delay,
      period: MICROS_PER_DAY,
      step: MICROS_PER_DAY,
      serviceWindow: null,
    }),
  ];
}

/** Everything that selectors can select. */
export interface Directory {
  /** Assets. */
  readonly GWA: readonly SelectorCandidate[];
  /** Markets. */
  readonly MWA: readonly SelectorCandidate[];
  readonly LX: readonly SelectorCandidate[];
  /** Names of liquid indices that were concluded from prices, by id. */
  readonly matchedNames?: ReadonlyMap<string, string>;
  readonly exchanges: readonly SelectorCandidate[];
  /** Asset ids by market capitalisation, largest first; undefined if no ranking is known. */
  readonly ranking: readonly string[] | undefined;
}

/** The name of an exchange; its id if the name is unknown. */
export function exchangeName(directory: Directory | undefined, id: string): string {
  return directory?.exchanges.find((exchange) => exchange.id === id)?.labels[0] ?? id;
}

export function toAssetCandidate({ id, symbol, name }: Pick<Asset, "id" | "symbol" | "name">) {
  return { id, labels: nonEmptyLabels(symbol, name), rankingAssetId: id };
}

/** A market without a base asset has no rank. An absent `rankingAssetId` would mean "always among the top". */
export function toMarketCandidate(id: string, baseAssetId: string | null, pair: string | null) {
  return { id, labels: nonEmptyLabels(pair), rankingAssetId: baseAssetId ?? "" };
}

export function toExchangeCandidate({ id, name }: { readonly id: string; readonly name: string | null }) {
  return { id, labels: nonEmptyLabels(name) };
}

export function readStoredDirectory(reader: Connection): Omit<Directory, "LX" | "ranking"> {
  return {
    GWA: readListedAssets(reader).map(toAssetCandidate),
    MWA: readListedMarkets(reader).map(({ id, baseAssetId, pair }) =>
      toMarketCandidate(id, baseAssetId, pair),
    ),
    exchanges: readListedExchanges(reader).map(toExchangeCandidate),
  };
}

function nonEmptyLabels(...texts: readonly (string | null)[]): string[] {
  return texts.filter((text) => text !== null && text !== "") as string[];
}

export interface ExchangeSelection {
  /** One id per ledger key; a single null means one key for all exchanges together. */
  readonly exchangeIds: readonly (string | null)[];
  /** Markets to store; undefined: all. */
  readonly markets: ReadonlySet<string> | undefined;
  /** False if the markets of the selector are not known. */
  readonly isResolved: boolean;
}

export function selectExchanges(settings: SyncSettings, directory: Directory): ExchangeSelection {
  const { exchangeTickers: selectors } = settings.streams;
  if (selectors === false) return { exchangeIds: [], markets: undefined, isResolved: true };
  const exchanges = resolveSelector(selectors.exchanges, directory.exchanges, undefined);
  const markets = resolveSelector(selectors.markets, directory.MWA, directory.ranking);
  const isNone = selectors.exchanges.kind === "none" || selectors.markets.kind === "none";
  const exchangeIds = isNone ? [] : selectors.exchanges.kind === "all" ? [null] : exchanges.ids;
  return {
    exchangeIds,
    markets: selectors.markets.kind === "all" ? undefined : new Set(markets.ids),
    isResolved: selectors.markets.kind === "all" || markets.missing === null,
  };
}

/** Ends the targets of deselected snapshot keys. No poller would do so, because a switched-off stream has none. */
export async function endDeselectedSnapshots(
  { client, clock, ingest, settings, signal }: SyncContext,
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
