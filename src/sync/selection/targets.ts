import type { SeriesWant } from "../../ingest/commit/targets.ts";
import { type Selection, type Selector, select } from "../../model/selector.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import { type HistoryStream, INTRADAY_BEGINS, INTRADAY_WINDOW } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, parseDayOrInstant } from "../../model/time.ts";
import type { HeadRules } from "../../warehouse/coverage/targets.ts";
import type { IndexSelectors, SyncSettings } from "../context/context.ts";
import type { Directory } from "./directory.ts";

/** The first markets opened in 2010: the full history of daily bars cannot begin earlier, wherever the service's does. */
export const DAILY_BARS_BEGIN = moment("2010-01-01");

/** What the settings select of one stream with a history. */
export interface WantedStream {
  readonly stream: HistoryStream;
  readonly wants: readonly SeriesWant[];
  readonly rules: HeadRules;
  /** Families whose selector cannot be resolved at present. */
  readonly undecided: readonly IndexType[];
}

/** What a selector could not do as it was written. */
export interface SelectorNotice {
  /** The setting, `sync.ohlcv.GWA`. */
  readonly setting: string;
  readonly kind: "unknown" | "shared" | "unresolved";
  readonly names: readonly string[];
}

export interface WantedSeries {
  readonly streams: readonly WantedStream[];
  readonly notices: readonly SelectorNotice[];
}

/** Rows younger than this may still be joined by others. */
export function settleDelay(refreshSeconds: number): Micros {
  return 2 * refreshSeconds * MICROS_PER_SECOND;
}

/** Every series that is to be followed through its history, at `now` by the service's clock. */
export function wantedSeries(settings: SyncSettings, directory: Directory, now: Micros): WantedSeries {
  const { ohlcv, intraday } = settings.streams;
  const delay = settleDelay(settings.refreshSeconds);
  const notices: SelectorNotice[] = [];
  const choose = (
    key: string,
    stream: HistoryStream,
    selectors: IndexSelectors | false,
    from: Micros,
    rules: HeadRules,
  ): WantedStream => {
    const undecided: IndexType[] = [];
    const wants: SeriesWant[] = [];
    for (const indexType of selectors === false ? [] : indexTypes) {
      const selector = selectors === false ? undefined : selectors[indexType];
      if (selector === undefined) continue;
      const selection = select(selector, directory[indexType], directory.ranking);
      notices.push(...noticesOf(`sync.${key}.${indexType}`, selection));
      if (!selection.resolved) undecided.push(indexType);
      for (const indexId of selection.ids)
        wants.push({ indexType, indexId, from, ...given(indexType, indexId) });
    }
    return { stream, wants, rules, undecided };
  };
  const given = (indexType: IndexType, indexId: string) => {
    const name = Object.entries(settings.lxIndexIds).find(([, id]) => id === indexId)?.[0];
    return indexType === "LX" && name !== undefined ? { name } : {};
  };
  const intradayFrom = Math.max(
    INTRADAY_BEGINS,
    now - Math.min(INTRADAY_WINDOW, (intraday === false ? 0 : intraday.days) * MICROS_PER_DAY),
  );
  return {
    streams: [
      choose("intraday", "index_ticks", intraday, intradayFrom, {
        settleDelay: delay,
        step: 1,
        keptFor: INTRADAY_WINDOW,
      }),
      choose("ohlcv", "ohlcv", ohlcv, DAILY_BARS_BEGIN, {
        settleDelay: delay,
        step: MICROS_PER_DAY,
        keptFor: null,
      }),
    ],
    notices,
  };
}

/** A selection, with what is to be said about it. */
export function noticesOf(setting: string, { unknown, shared, resolved }: Selection): SelectorNotice[] {
  const notices: SelectorNotice[] = [];
  if (unknown.length > 0) notices.push({ setting, kind: "unknown", names: unknown });
  if (shared.length > 0) notices.push({ setting, kind: "shared", names: shared });
  if (!resolved) notices.push({ setting, kind: "unresolved", names: [] });
  return notices;
}

/** Whether any selector needs to know which assets are the largest. */
export function needsRanking({ streams }: SyncSettings): boolean {
  const { ohlcv, intraday, exchangeTickers } = streams;
  const selectors: (Selector | undefined)[] = [
    ...[ohlcv, intraday].flatMap((each) => (each === false ? [] : [each.GWA, each.MWA])),
    ...(exchangeTickers === false ? [] : [exchangeTickers.markets]),
  ];
  return selectors.some((selector) => selector?.kind === "top");
}

/** Whether any selector asks for liquid indices. */
export function needsLiquidIndices({ streams }: SyncSettings): boolean {
  return [streams.ohlcv, streams.intraday].some((each) => each !== false && each.LX.kind !== "none");
}

/** The lists of the directory that some selector picks from. */
export function neededLists({ streams }: SyncSettings): readonly Exclude<keyof Directory, "ranking">[] {
  const { ohlcv, intraday, exchangeTickers, derivatives } = streams;
  const pickers: [Exclude<keyof Directory, "ranking">, Selector][] = [];
  for (const each of [ohlcv, intraday])
    if (each !== false) pickers.push(...indexTypes.map((type): [IndexType, Selector] => [type, each[type]]));
  if (exchangeTickers !== false)
    pickers.push(["exchanges", exchangeTickers.exchanges], ["MWA", exchangeTickers.markets]);
  if (derivatives !== false) pickers.push(["exchanges", derivatives.exchanges]);
  return pickers.filter(([, { kind }]) => kind !== "none").map(([list]) => list);
}

function moment(day: string): Micros {
  const parsed = parseDayOrInstant(day);
  if (parsed === undefined) throw new Error(`${day} is no day`);
  return parsed;
}
