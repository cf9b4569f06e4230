import type { SeriesTarget } from "../../ingest/commit/targets.ts";
import {
  formatUnknownNames,
  NOTHING_SELECTED,
  resolveSelector,
  type Selection,
  type Selector,
  type SelectorCandidate,
} from "../../model/selector.ts";
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

export type SelectedTargets = ReturnType<typeof resolveTargets>;
/** The targets of one history stream. */
export type StreamTargets = SelectedTargets["streams"][number];

/** A part of a selector that could not be resolved as written. */
export interface SelectorNotice {
  /** The setting, for example `sync.ohlcv.GWA`. */
  readonly setting: string;
  /** `shared`: several candidates have the name. `unresolved`: no ranking is known, or nothing that it could select. */
  readonly kind: "unknown" | "shared" | "unresolved";
  /** What an unresolved one lacks. */
  readonly missing: Selection["missing"];
  readonly names: readonly string[];
  /** The closest known name of each unknown one that has one. */
  readonly suggestions: Readonly<Record<string, string>>;
}

/** Resolves the selectors of the history streams at `now` (service time). */
export function resolveTargets(settings: SyncSettings, directory: Directory, now: Micros) {
  const { ohlcv, intraday } = settings.streams;
  const delay = settleDelay(settings.refreshSeconds);
  const notices: SelectorNotice[] = [];
  const resolveStream = (
    key: string,
    stream: HistoryStream,
    selectors: IndexSelectors | false,
    from: Micros,
    rules: StreamRules,
  ) => {
    /** Index types whose selector cannot be resolved now. */
    const unresolved: IndexType[] = [];
    const targets: SeriesTarget[] = [];
    for (const indexType of selectors === false ? [] : indexTypes) {
      const selector = selectors === false ? undefined : selectors[indexType];
      if (selector === undefined) continue;
      const selection = resolveSelector(selector, directory[indexType], directory.ranking);
      notices.push(...selectorNotices(`sync.${key}.${indexType}`, selection));
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
  return {
    streams: [
      resolveStream("intraday", "index_ticks", intraday, intradayFrom, {
        settleDelay: delay,
        period: settings.refreshSeconds * MICROS_PER_SECOND,
        step: 1,
        serviceWindow: INTRADAY_WINDOW,
      }),
      resolveStream("ohlcv", "ohlcv", ohlcv, OHLCV_HISTORY_START, {
        settleDelay: delay,
        period: MICROS_PER_DAY,
        step: MICROS_PER_DAY,
        serviceWindow: null,
      }),
    ],
    notices,
  };
}

export function selectorNotices(
  setting: string,
  { unknownNames, ambiguousNames, suggestions, missing }: Selection,
): SelectorNotice[] {
  const notices: SelectorNotice[] = [];
  const notice = { setting, missing, names: [], suggestions: {} };
  if (unknownNames.length > 0) notices.push({ ...notice, kind: "unknown", names: unknownNames, suggestions });
  if (ambiguousNames.length > 0) notices.push({ ...notice, kind: "shared", names: ambiguousNames });
  if (missing) notices.push({ ...notice, kind: "unresolved" });
  return notices;
}

/** What is wrong with a selector, in one line with its remedy. */
export function describeNotice({ setting, kind, missing, names, suggestions }: SelectorNotice): string {
  switch (kind) {
    case "unknown": {
      const known = Object.keys(suggestions).length === names.length;
      const list = formatUnknownNames({ unknownNames: names, suggestions });
      return `${setting} names ${list}, which the service does not list${known ? "" : ": check the spelling"}`;
    }
    case "shared":
      return `${setting}: several have the name ${names.join(", ")}, and all of them are selected`;
    case "unresolved":
      return missing === "ranking"
        ? `${setting} selects the largest assets, but no ranking is known: it needs the market capitalisations`
        : `${setting} ${NOTHING_SELECTED}: the service has shown none. If it has none, set this to none`;
  }
}

/** Whether any selector needs the ranking by market capitalisation. */
export function needsRanking({ streams }: SyncSettings): boolean {
  const { ohlcv, intraday, exchangeTickers } = streams;
  const selectors: (Selector | undefined)[] = [
    ...[ohlcv, intraday].flatMap((each) => (each === false ? [] : [each.GWA, each.MWA])),
    ...(exchangeTickers === false ? [] : [exchangeTickers.markets]),
  ];
  return selectors.some((selector) => selector?.kind === "top");
}

/** Whether any selector selects liquid indices. */
export function needsLiquidIndices({ streams }: SyncSettings): boolean {
  return [streams.ohlcv, streams.intraday].some((each) => each !== false && each.LX.kind !== "none");
}

/** The lists of the directory that the selectors use. */
export function neededDirectoryLists({
  streams,
}: SyncSettings): readonly Exclude<keyof Directory, "ranking" | "matchedNames">[] {
  const { ohlcv, intraday, exchangeTickers, derivatives } = streams;
  const pairs: [Exclude<keyof Directory, "ranking" | "matchedNames">, Selector][] = [];
  for (const each of [ohlcv, intraday])
    if (each !== false) pairs.push(...indexTypes.map((type): [IndexType, Selector] => [type, each[type]]));
  if (exchangeTickers !== false)
    pairs.push(["exchanges", exchangeTickers.exchanges], ["MWA", exchangeTickers.markets]);
  if (derivatives !== false) pairs.push(["exchanges", derivatives.exchanges]);
  return pairs.filter(([, { kind }]) => kind !== "none").map(([list]) => list);
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

export function toAssetCandidates(
  assets: readonly { id: string; symbol: string | null; name: string | null }[],
): SelectorCandidate[] {
  return assets.map(({ id, symbol, name }) => ({
    id,
    labels: nonEmptyLabels(symbol, name),
    rankingAssetId: id,
  }));
}

export function toMarketCandidates(
  markets: readonly { id: string; baseAssetId: string | null; pair: string | null }[],
): SelectorCandidate[] {
  // A market without a base asset has no rank. An absent `rankingAssetId` would mean "always among the top".
  return markets.map(({ id, baseAssetId, pair }) => ({
    id,
    labels: nonEmptyLabels(pair),
    rankingAssetId: baseAssetId ?? "",
  }));
}

export function toNamedCandidates(
  named: readonly { id: string; name: string | null }[],
): SelectorCandidate[] {
  return named.map(({ id, name }) => ({ id, labels: nonEmptyLabels(name) }));
}

/** Reads the stored lookups as selector candidates. */
export function readStoredDirectory(reader: Connection): Omit<Directory, "LX" | "ranking"> {
  return {
    GWA: toAssetCandidates(readListedAssets(reader)),
    MWA: toMarketCandidates(readListedMarkets(reader)),
    exchanges: toNamedCandidates(readListedExchanges(reader)),
  };
}

function nonEmptyLabels(...texts: readonly (string | null)[]): string[] {
  return texts.filter((text) => text !== null && text !== "") as string[];
}

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
