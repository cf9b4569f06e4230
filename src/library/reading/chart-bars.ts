import type { ChartBar, ChartBarsResult, ChartRange } from "../../model/answers/chart-bars.ts";
import { hasHistory } from "../../model/streams.ts";
import {
  type BarWidth,
  barWidths,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
  startOfDay,
} from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import { readSettledIn } from "../../warehouse/coverage/ledger.ts";
import { readKeyGaps } from "../../warehouse/coverage/series-gaps.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { figuresOf } from "../../warehouse/lookups/series-kinds.ts";
import { NOT_FOLLOWED_REASON } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { MAX_AHEAD_MICROS } from "../../warehouse/views/data-views.ts";
import type { BarRow } from "../rows.ts";
import { findDailyClose, findTick } from "./as-of-reader.ts";
import { createBarGrid } from "./bar-grid.ts";
import { readBars } from "./bar-reader.ts";
import { readExtent } from "./read-plan.ts";
import { hasKeptBars, readById, type SourcedSeries, withSource } from "./series-names.ts";

/** Which bars of which series to read. The range consists of whole bars. */
export interface ChartBarsOptions extends TimeRange {
  /** Of what is no index: its stream. */
  readonly indexType: string;
  readonly indexId: string;
  readonly width: BarWidth;
  /** The figure of a ticker that is read as its price; default: its price. */
  readonly of?: string | undefined;
}

/** Bars are read in chunks of this length; `hasTime` is checked between two chunks. */
const CHUNK_MICROS = 50 * MICROS_PER_DAY;

/** The bars of a page, as the library reads them, and what is missing. Undefined if no series has that id. */
export function readChartBars(
  connection: Connection,
  options: ChartBarsOptions,
  hasTime: () => boolean,
): ChartBarsResult | undefined {
  const { indexType, indexId, width, to } = options;
  return connection.database.transaction(() => {
    const series = readById(connection, options);
    if (!series) return undefined;
    const [ticks, days] = [withSource(series, "ticks"), withSource(series, "ohlcv")];
    const present = readPresentTs(connection);
    const { from, bars } = readNewestFirst(options, hasTime, (range) =>
      readParts(connection, ticks, width, range),
    );
    const shown = { from, to };
    const ofTicks = readUnproven(connection, ticks, shown, present);
    const [firstTick] = readExtent(connection, ticks);
    const [firstDay] = hasKeptBars(series) ? readExtent(connection, days) : [null];
    const daily = firstDay === null ? [] : readParts(connection, days, "1d", { from: startOfDay(from), to });
    const shownDays =
      firstDay === null
        ? []
        : listDailyDays({ width, from, to }, { bars, daily }, ofTicks, firstTick, present);
    // Where no ticks were asked for, the ledger of the daily bars says what is proven.
    const isDaily = intersect(shownDays, unasked(ofTicks));
    const ofDays = isDaily.length > 0 ? readUnproven(connection, days, shown, present) : [];
    const spans = [...clip(ofTicks, subtract([shown], isDaily)), ...clip(ofDays, isDaily)];
    const isShown = ([start]: ChartBar) =>
      shownDays.some((range) => toSeconds(range.from) <= start && start < toSeconds(range.to));
    const ticksFrom = firstTick === null ? null : toSeconds(createBarGrid(width).startOf(firstTick));
    const newest =
      findTick(connection, series, present + MAX_AHEAD_MICROS) ??
      (firstDay === null ? undefined : findDailyClose(connection, series, present + MICROS_PER_DAY));
    return {
      // No news of commits are about what is no index.
      series: series.stream === "index_ticks" ? (series.key ?? 0) : 0,
      ...{ index_type: indexType, index_id: indexId, name: series.name, width },
      ...toSecondsRange(shown),
      is_cut: from > options.from,
      first:
        firstDay === null ? ticksFrom : Math.min(ticksFrom ?? Number.POSITIVE_INFINITY, toSeconds(firstDay)),
      ticks_from: ticksFrom,
      last_price: newest?.price ?? null,
      ...{ of: series.figure, figures: series.stream === "index_ticks" ? [] : figuresOf(series.stream) },
      bars: [...bars.filter((bar) => !isShown(bar)), ...daily.filter(isShown)].sort(([a], [b]) => a - b),
      days: shownDays.map(toSecondsRange),
      spans: spans.map((span) => ({ ...span, ...toSecondsRange(span) })).sort((a, b) => a.from - b.from),
    };
  })();
}

const toSeconds = (ts: Micros) => ts / MICROS_PER_SECOND;
const toSecondsRange = ({ from, to }: TimeRange) => ({ from: toSeconds(from), to: toSeconds(to) });

function readParts(
  connection: Connection,
  sourced: SourcedSeries,
  width: BarWidth,
  range: TimeRange,
): ChartBar[] {
  return [...readBars(connection, { ...sourced, range, grid: createBarGrid(width) }, true)].map(toChartBar);
}

function toChartBar({ ts, open, high, low, close, n_ticks, source, ...bar }: BarRow): ChartBar {
  const ticks = source === "ohlcv" ? null : n_ticks;
  const { expected_ticks, coverage, is_complete, volume_24h } = bar;
  return [toSeconds(ts), open, high, low, close, ticks, expected_ticks, coverage, is_complete, volume_24h];
}

/** Reads the newest parts of the range first, until the time is up. */
function readNewestFirst(
  { width, to, ...options }: ChartBarsOptions,
  hasTime: () => boolean,
  read: (range: TimeRange) => ChartBar[],
): { readonly from: Micros; readonly bars: ChartBar[] } {
  const length = barWidths[width];
  const chunkLength = Math.max(length, Math.floor(CHUNK_MICROS / length) * length);
  const chunks: ChartBar[][] = [];
  let from = to;
  while (from > options.from && (from === to || hasTime())) {
    const until = from;
    from = Math.max(options.from, until - chunkLength);
    chunks.unshift(read({ from, to: until }));
  }
  return { from, bars: chunks.flat() };
}

/**
 * The whole days without ticks that have a daily bar, or of which no ticks were ever asked for. Among bars of a day also those
 * of which only a part was asked for: their daily bar is whole.
 */
function listDailyDays(
  { width, from, to }: Pick<ChartBarsOptions, "width" | "from" | "to">,
  { bars, daily }: Readonly<Record<"bars" | "daily", readonly ChartBar[]>>,
  ofTicks: readonly UnprovenRange[],
  firstTick: Micros | null,
  present: Micros,
): TimeRanges {
  const withTicks = new Set(bars.map(([start]) => startOfDay(start * MICROS_PER_SECOND)));
  const withBar = new Set(daily.map(([start]) => start * MICROS_PER_SECOND));
  const neverSelected = normalise(ofTicks.filter(({ state }) => state === "none"));
  const isUnasked = (day: TimeRange) =>
    subtract(normalise([{ from: day.from, to: Math.min(day.to, present) }]), unasked(ofTicks)).length === 0;
  const isBeforeTicks = ({ to }: TimeRange) => firstTick === null || to <= firstTick;
  const isDaily = (day: TimeRange) => {
    if (!withTicks.has(day.from)) return withBar.has(day.from) || isBeforeTicks(day) || isUnasked(day);
    return width === "1d" && withBar.has(day.from) && intersect([day], neverSelected).length > 0;
  };
  const days: TimeRange[] = [];
  for (let day = startOfDay(from + MICROS_PER_DAY - 1); day + MICROS_PER_DAY <= to; day += MICROS_PER_DAY)
    days.push({ from: day, to: day + MICROS_PER_DAY });
  return normalise(days.filter(isDaily));
}

/** A range of a series that is not proven to have its rows. */
type UnprovenRange = TimeRange & Omit<ChartRange, "from" | "to">;

/** The service has no ticks, or the settings never selected them. */
function unasked(ranges: readonly UnprovenRange[]): TimeRanges {
  return normalise(ranges.filter(({ state }) => state === "none" || state === "empty"));
}

function clip(ranges: readonly UnprovenRange[], kept: TimeRanges): UnprovenRange[] {
  return ranges.flatMap((range) => intersect([range], kept).map((part) => ({ ...range, ...part })));
}

const MAX_GAPS = 2_000;
/** Shorter empty ranges are not shown: they lie between any two ticks. */
const MIN_EMPTY_MICROS = 60 * MICROS_PER_SECOND;

/**
 * Every part of the range without proof of rows, with its reason, including what the settings never selected. `present`: by the
 * clock of the views, read before. The daemon's clock may be ahead of it while the service is down: that was not selected yet.
 */
function readUnproven(
  connection: Connection,
  { series: { ledgerKeys }, stream }: SourcedSeries,
  range: TimeRange,
  present: Micros,
): UnprovenRange[] {
  const ofState = ({ from, to }: TimeRange, state: ChartRange["state"], reason: string): UnprovenRange => ({
    ...{ from, to, stream, state, reason },
  });
  // A subscription to all exchanges covers each of them.
  const keys = ledgerKeys.filter((key) => key !== null).map((series) => ({ stream, series }));
  const settled = keys.flatMap((key) => readSettledIn(connection, key, range));
  const covered = normalise(settled.filter(({ proof }) => proof !== "lost"));
  const gaps: UnprovenRange[] = [];
  // Nothing is known before the oldest gap of a truncated list, nor after the present of the views.
  let oldest = range.from;
  for (const key of keys) {
    const own = readKeyGaps(connection, key, present)
      .filter(({ from, to }) => from < range.to && to > range.from)
      .slice(-MAX_GAPS);
    if (own.length === MAX_GAPS) oldest = Math.max(oldest, own[0]?.from ?? 0);
    const rest = subtract([range], normalise([...covered, ...gaps]));
    gaps.push(
      ...clip(
        own.map((gap) => ofState(gap, gap.state, gap.reason)),
        rest,
      ),
    );
  }
  const known = normalise([{ from: oldest, to: Math.min(range.to, present) }]);
  const empty = settled
    .filter(({ proof, from, to }) => proof === "empty" && to - from >= MIN_EMPTY_MICROS)
    .map((part) => ofState(part, "empty", part.reason ?? "no rows"));
  const unknown = subtract(known, normalise([...gaps, ...settled]));
  const reason = hasHistory(stream) ? "not selected" : NOT_FOLLOWED_REASON;
  const ranges = [...gaps, ...empty, ...unknown.map((part) => ofState(part, "none", reason))];
  return clip(ranges, [range]).sort((a, b) => a.from - b.from);
}
