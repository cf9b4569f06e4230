import type { SeriesTarget } from "../../ingest/commit/targets.ts";
import {
  formatUnknownNames,
  NOTHING_SELECTED,
  resolveSelector,
  type Selection,
  type Selector,
} from "../../model/selector.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import {
  type HistoryStream,
  INTRADAY_BEGINS,
  INTRADAY_DAYS,
  INTRADAY_WINDOW,
  settleDelay,
} from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, parseDateOrTimestamp } from "../../model/time.ts";
import type { StreamRules } from "../../warehouse/coverage/targets.ts";
import type { IndexSelectors, SyncSettings } from "../context/context.ts";
import type { Directory } from "./directory.ts";

/** The first crypto markets opened in 2010, so no daily bar can be older. */
const OHLCV_HISTORY_START = parseDay("2010-01-01");

/** The targets of one history stream. */
export interface StreamTargets {
  readonly stream: HistoryStream;
  readonly targets: readonly SeriesTarget[];
  readonly rules: StreamRules;
  /** Where the target of a series of this stream begins. */
  readonly from: Micros;
  /** Index types whose selector cannot be resolved now. */
  readonly unresolved: readonly IndexType[];
}

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

export interface SelectedTargets {
  readonly streams: readonly StreamTargets[];
  readonly notices: readonly SelectorNotice[];
}

/** Resolves the selectors of the history streams at `now` (service time). */
export function resolveTargets(settings: SyncSettings, directory: Directory, now: Micros): SelectedTargets {
  const { ohlcv, intraday } = settings.streams;
  const delay = settleDelay(settings.refreshSeconds);
  const notices: SelectorNotice[] = [];
  const resolveStream = (
    key: string,
    stream: HistoryStream,
    selectors: IndexSelectors | false,
    from: Micros,
    rules: StreamRules,
  ): StreamTargets => {
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

function parseDay(day: string): Micros {
  const parsed = parseDateOrTimestamp(day);
  if (parsed === undefined) throw new Error(`${day} is not a date`);
  return parsed;
}
