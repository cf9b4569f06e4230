import type { ChartBar, ChartBarsResult, ChartRange } from "../../model/answers/chart-bars.ts";
import {
  type BarWidth,
  barWidths,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
  startOfDay,
} from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import { readSettledIn } from "../coverage/ledger.ts";
import { readKeyGaps } from "../coverage/series-gaps.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { SeriesRow } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import { MAX_AHEAD_MICROS } from "../views/data-views.ts";

/** Which bars of which index to read. The range consists of whole bars. */
export interface ChartBarsOptions extends TimeRange {
  readonly indexType: string;
  readonly indexId: string;
  readonly width: BarWidth;
  /** The figure of a ticker that is read as its price; default: its price. */
  readonly of?: string | undefined;
}

/** Bars are read in chunks of this length; `hasTime` is checked between two chunks. */
const CHUNK_MICROS = 50 * MICROS_PER_DAY;

/** Undefined if no index has that id. */
export function readChartBars(
  connection: Connection,
  options: ChartBarsOptions,
  hasTime: () => boolean,
): ChartBarsResult | undefined {
  const { indexType, indexId, width, to } = options;
  return connection.database.transaction(() => {
    const sql = "SELECT series, name FROM series WHERE index_type = ? AND index_id = ?";
    const found = connection.findRow<Pick<SeriesRow, "series" | "name">>(sql, [indexType, indexId]);
    if (!found) return undefined;
    const present = readPresentTs(connection);
    const { from, parts: bars } = readNewestFirst(options, hasTime, (range) =>
      readStoredBars(connection, { ...options, ...range }, `bars_${width}`, tickBarColumns),
    );
    const stored = readStoredHistory(connection, found.series, width, present);
    const requested = { ...options, from };
    const ofTicks = readUnprovenRanges(connection, "index_ticks", found.series, requested, present);
    const wholeDays = { ...requested, from: startOfDay(from) };
    const daily =
      stored.firstDay === null ? [] : readStoredBars(connection, wholeDays, "ohlcv", dailyBarColumns);
    const days =
      stored.firstDay === null ? [] : listDailyDays(requested, { bars, daily, ofTicks, stored, present });
    // Where no ticks were asked for, the ledger of the daily bars says what is proven.
    const isDaily = intersect(days, unasked(ofTicks));
    const ofDays =
      isDaily.length > 0 ? readUnprovenRanges(connection, "ohlcv", found.series, requested, present) : [];
    const spans = [...clip(ofTicks, subtract([requested], isDaily)), ...clip(ofDays, isDaily)];
    const isShownDay = new Set(days.flatMap((range) => listDays(range).map(({ from }) => toSeconds(from))));
    const firsts = [stored.firstTick, stored.firstDay].filter((ts) => ts !== null);
    return {
      series: found.series,
      index_type: indexType,
      index_id: indexId,
      name: found.name,
      width,
      ...toSecondsRange({ from, to }),
      is_cut: from > options.from,
      first: firsts.length > 0 ? toSeconds(Math.min(...firsts)) : null,
      ticks_from: stored.firstTick === null ? null : toSeconds(stored.firstTick),
      last_price: stored.lastPrice,
      of: "price",
      figures: [],
      bars: [
        ...bars.filter(([start]) => !isShownDay.has(start)),
        ...daily.filter(([start]) => isShownDay.has(start)),
      ].sort(([a], [b]) => a - b),
      days: days.map(toSecondsRange),
      spans: spans.map((span) => ({ ...span, ...toSecondsRange(span) })).sort((a, b) => a.from - b.from),
    };
  })();
}

const toSeconds = (ts: Micros) => ts / MICROS_PER_SECOND;
const toSecondsRange = ({ from, to }: TimeRange) => ({ from: toSeconds(from), to: toSeconds(to) });

/** The columns of a `ChartBar`. */
const tickBarColumns = "open, high, low, close, n_ticks, expected_ticks, coverage, is_complete, volume_24h";
const dailyBarColumns = "open, high, low, close, NULL, 0, is_final, is_final, volume";

function readStoredBars(
  connection: Connection,
  { indexType, indexId, from, to }: ChartBarsOptions,
  view: string,
  columns: string,
): ChartBar[] {
  const sql = `SELECT ts / ${MICROS_PER_SECOND}, ${columns} FROM ${view}
    WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ? ORDER BY ts`;
  return connection.tuples<ChartBar>(sql, [indexType, indexId, from, to]);
}

/** Reads the newest parts of the range first, until the time is up. */
export function readNewestFirst<T>(
  { width, to, ...options }: ChartBarsOptions,
  hasTime: () => boolean,
  read: (range: TimeRange) => T[],
): { readonly from: Micros; readonly parts: T[] } {
  const length = barWidths[width];
  const chunkLength = Math.max(length, Math.floor(CHUNK_MICROS / length) * length);
  const chunks: T[][] = [];
  let from = to;
  while (from > options.from && (from === to || hasTime())) {
    const until = from;
    from = Math.max(options.from, until - chunkLength);
    chunks.unshift(read({ from, to: until }));
  }
  return { from, parts: chunks.flat() };
}

/** Narrow bars come from ticks, wide ones from kept bars, which may reach further back. */
function readStoredHistory(connection: Connection, key: number, width: BarWidth, present: Micros) {
  const length = barWidths[width];
  const table = length < barWidths["1h"] ? "index_tick_rows" : "kept_bars";
  const seek = (sql: string) => connection.findValue<number | null>(sql, [key]) ?? null;
  const newest = connection.findValue<number>(
    "SELECT price FROM index_tick_rows WHERE series = ? AND ts < ? AND price IS NOT NULL ORDER BY ts DESC LIMIT 1",
    [key, present + MAX_AHEAD_MICROS],
  );
  const first = seek(`SELECT min(ts) FROM ${table} WHERE series = ?`);
  return {
    /** The start of the oldest bar from ticks. */
    firstTick: first === null ? null : Math.floor(first / length) * length,
    firstDay: seek("SELECT min(ts) FROM daily_bar_rows WHERE series = ?"),
    lastPrice:
      newest ??
      seek(
        "SELECT close FROM daily_bar_rows WHERE series = ? AND close IS NOT NULL ORDER BY ts DESC LIMIT 1",
      ),
  };
}

interface DailyDaysOptions {
  readonly bars: readonly ChartBar[];
  readonly daily: readonly ChartBar[];
  readonly ofTicks: readonly UnprovenRange[];
  readonly stored: ReturnType<typeof readStoredHistory>;
  readonly present: Micros;
}

/**
 * The whole days without ticks that have a daily bar, or of which no ticks were ever asked for. Among bars of a day also those
 * of which only a part was asked for: their daily bar is whole.
 */
function listDailyDays(
  { width, ...range }: ChartBarsOptions,
  { bars, daily, ofTicks, stored, present }: DailyDaysOptions,
): TimeRanges {
  const withTicks = new Set(bars.map(([start]) => startOfDay(start * MICROS_PER_SECOND)));
  const withBar = new Set(daily.map(([start]) => start * MICROS_PER_SECOND));
  const withoutTicks = unasked(ofTicks);
  const neverSelected = normalise(ofTicks.filter(({ state }) => state === "none"));
  const isUnasked = ({ from, to }: TimeRange) => {
    const known = { from, to: Math.min(to, present) };
    return subtract(normalise([known]), withoutTicks).length === 0;
  };
  const isBeforeTicks = ({ to }: TimeRange) => stored.firstTick === null || to <= stored.firstTick;
  const isDaily = (day: TimeRange) => {
    if (!withTicks.has(day.from)) return withBar.has(day.from) || isBeforeTicks(day) || isUnasked(day);
    return width === "1d" && withBar.has(day.from) && intersect([day], neverSelected).length > 0;
  };
  return normalise(listDays(range).filter(isDaily));
}

function listDays({ from, to }: TimeRange): TimeRange[] {
  const first = Math.ceil(from / MICROS_PER_DAY) * MICROS_PER_DAY;
  const count = Math.max(0, Math.floor((to - first) / MICROS_PER_DAY));
  return Array.from({ length: count }, (_, i) => {
    const day = first + i * MICROS_PER_DAY;
    return { from: day, to: day + MICROS_PER_DAY };
  });
}

/** The service has no ticks, or the settings never selected them. */
function unasked(ranges: readonly UnprovenRange[]): TimeRanges {
  return normalise(ranges.filter(({ state }) => state === "none" || state === "empty"));
}

function clip(ranges: readonly UnprovenRange[], kept: TimeRanges): UnprovenRange[] {
  return ranges.flatMap((range) => intersect([range], kept).map((part) => ({ ...range, ...part })));
}

/** A range of a series that is not proven to have its rows. */
type UnprovenRange = TimeRange & Omit<ChartRange, "from" | "to">;

export const MAX_GAPS = 2_000;
/** Shorter empty ranges are not shown: they lie between any two ticks. */
const MIN_EMPTY_MICROS = 60 * MICROS_PER_SECOND;

/**
 * Every part of the range without proof of rows, with its reason, including what the settings never selected. `present`: by the
 * clock of the views, read before. The daemon's clock may be ahead of it while the service is down: that was not asked for yet.
 */
function readUnprovenRanges(
  connection: Connection,
  stream: ChartRange["stream"],
  series: number,
  { from: start, to: end }: TimeRange,
  present: Micros,
): UnprovenRange[] {
  const requested = normalise([{ from: start, to: end }]);
  const toRange = ({ from, to }: TimeRange, state: ChartRange["state"], reason: string): UnprovenRange => ({
    ...{ from, to, stream, state, reason },
  });
  const gaps = readKeyGaps(connection, { stream, series }, present)
    .filter(({ from, to }) => from < end && to > start)
    .slice(-MAX_GAPS)
    .map((gap) => toRange(gap, gap.state, gap.reason));
  const settled = readSettledIn(connection, { stream, series }, { from: start, to: end });
  const empty = settled
    .filter(({ proof, from, to }) => proof === "empty" && to - from >= MIN_EMPTY_MICROS)
    .map((range) => toRange(range, "empty", range.reason ?? "no rows"));
  // Nothing is known before the oldest gap of a truncated list, nor after the present of the views.
  const oldest = gaps.length < MAX_GAPS ? start : (gaps[0]?.from ?? 0);
  const known = intersect(requested, normalise([{ from: oldest, to: present }]));
  const neverSelected = subtract(known, normalise([...gaps, ...settled])).map((range) =>
    toRange(range, "none", "not asked for"),
  );
  return clip([...gaps, ...empty, ...neverSelected], requested).sort((a, b) => a.from - b.from);
}
