import {
  BarAggregate,
  type BarFigures,
  emptyDetails,
  toTickFigures,
} from "../../model/answers/bar-aggregate.ts";
import { usageFailure } from "../../model/failure.ts";
import { DEFAULT_CADENCE } from "../../model/streams.ts";
import { barWidths, MICROS_PER_DAY, type Micros, startOfDay } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { computeBar } from "../../warehouse/rows/kept-bars.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatExact, parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import type { BarRow } from "../rows.ts";
import { alignToBars, type BarGrid, isAlignedTo } from "./bar-grid.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import { type BarPlan, hasKeptBars, type KeyedSeries } from "./series-names.ts";
import { readPriceBlocks } from "./tick-reader.ts";

const HOUR = barWidths["1h"];

/**
 * Reads the bars of one series that begin in the range, in order of time; `running`: also the one that is not over yet. Call it in
 * a read transaction.
 */
export function* readBars(connection: Connection, plan: BarPlan, running = false): Generator<BarRow> {
  const { series, grid } = plan;
  const range = alignToBars(grid, plan.range);
  if (!canBuild(plan))
    throw usageFailure(
      `${series.name} has daily bars only, whose days are those of UTC`,
      "ask for bars of 1d, or a multiple of it, in UTC",
    );
  if (series.key === null || range.from >= range.to) return;
  const aligned = { ...plan, range };
  const toRow = rowMaker(connection, aligned);
  const present = readPresentTs(connection);
  for (const bar of buildBars(connection, aligned, series.key))
    if (running || bar.end <= present) yield toRow(bar);
}

/** Whether bars of this grid can be built: daily bars make up days and multiples of them only. */
export function canBuild({ range, source, grid }: Pick<BarPlan, "range" | "source" | "grid">): boolean {
  return source === "ticks" || isAlignedTo(grid, MICROS_PER_DAY, alignToBars(grid, range));
}

/** Whether the bars are computed from ticks: others consist of kept hours, or of the service's days. */
function readsTicks({ series, range, source, grid }: BarPlan): boolean {
  return source === "ticks" && !(hasKeptBars(series) && isAlignedTo(grid, HOUR, range));
}

/** A bar without its coverage. */
interface BuiltBar extends BarFigures {
  readonly start: Micros;
  readonly end: Micros;
}

/** Joins ticks, hourly bars or daily bars, given in order of time, to the bars of a grid. */
class BarBuilder {
  readonly #grid: BarGrid;
  readonly #bar = new BarAggregate();
  #start = Number.NaN;
  #end = Number.NEGATIVE_INFINITY;

  constructor(grid: BarGrid) {
    this.#grid = grid;
  }

  /** Returns the previous bar if the tick begins a new one. */
  addPlainTick(ts: Micros, price: number, volume: number | null): BuiltBar | undefined {
    const finished = ts < this.#end ? undefined : this.#begin(ts);
    this.#bar.addPlainTick(price, volume);
    return finished;
  }

  /** Returns the previous bar if the part begins a new one. */
  add(ts: Micros, part: BarFigures): BuiltBar | undefined {
    const finished = ts < this.#end ? undefined : this.#begin(ts);
    this.#bar.add(part);
    return finished;
  }

  /** The bar in progress; undefined if there is none. */
  finish(): BuiltBar | undefined {
    const bar = this.#bar.finish();
    return bar && { start: this.#start, end: this.#end, ...bar };
  }

  #begin(ts: Micros): BuiltBar | undefined {
    const finished = this.finish();
    this.#start = this.#grid.startOf(ts);
    this.#end = this.#grid.endOf(this.#start);
    return finished;
  }
}

function* buildBars(connection: Connection, plan: BarPlan, key: number): Generator<BuiltBar> {
  const { series, range, source, grid } = plan;
  const builder = new BarBuilder(grid);
  if (readsTicks(plan)) yield* addTicks(builder, connection, series, range);
  else {
    const read = source === "ohlcv" ? readDailyBars : readHours;
    for (const [ts, part] of read(connection, key, range)) {
      const bar = builder.add(ts, part);
      if (bar) yield bar;
    }
  }
  const last = builder.finish();
  if (last) yield last;
}

function* addTicks(
  builder: BarBuilder,
  connection: Connection,
  series: KeyedSeries,
  range: TimeRange,
): Generator<BuiltBar> {
  for (const block of readPriceBlocks(connection, series, range)) {
    for (const [ts, price, volume, detailsText] of block) {
      if (price === null) continue;
      const bar =
        detailsText === null
          ? builder.addPlainTick(ts, price, volume)
          : builder.add(ts, toTickFigures(price, volume, parseRowDetails(detailsText), series.figure));
      if (bar) yield bar;
    }
  }
}

/** A part of a bar and where it begins. */
type BarPart = readonly [ts: Micros, figures: BarFigures];

/** A row of the table of either. `Price`: number, or null if it may be missing. */
type StoredBar<Price, More extends readonly unknown[]> = readonly [
  ts: Micros,
  open: Price,
  high: Price,
  low: Price,
  close: Price,
  volume: number | null,
  ...more: More,
  details: string | null,
];
type KeptBarRow = StoredBar<number, [ticks: number | null, doubtful: number]>;
type DailyBarRow = StoredBar<number | null, []>;

const hoursSql = `SELECT ts, open, high, low, close, volume_24h, n_ticks, n_doubtful, details FROM kept_bars
  WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts`;

/** Kept hourly bars; a stale one is computed from its ticks, as the views do. */
function* readHours(connection: Connection, key: number, { from, to }: TimeRange): Generator<BarPart> {
  for (const row of connection.tuples<KeptBarRow>(hoursSql, [key, from, to])) {
    const [ts, open, high, low, close, volume, ticks, doubtful, details] = row;
    if (ticks !== null) {
      yield [ts, { open, high, low, close, volume, ticks, doubtful, digits: parseRowDetails(details) }];
      continue;
    }
    const bar = computeBar(connection, key, ts);
    if (bar) yield [ts, bar];
  }
}

const daysSql = `SELECT ts, open, high, low, close, volume, details FROM daily_bar_rows
  WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts`;

function* readDailyBars(connection: Connection, key: number, { from, to }: TimeRange): Generator<BarPart> {
  const bounds = [key, startOfDay(from), startOfDay(to)];
  for (const row of connection.tuples<DailyBarRow>(daysSql, bounds)) {
    const [ts, open, high, low, close, volume, detailsText] = row;
    if (open === null || high === null || low === null || close === null) continue;
    const { volume: volumeDigits, quality, ...details } = parseRowDetails(detailsText);
    const doubtful = quality === undefined ? 0 : 1;
    const digits = detailsText === null ? emptyDetails : { ...details, volume_24h: volumeDigits };
    yield [ts, { open, high, low, close, volume, ticks: 1, doubtful, digits }];
  }
}

/** Adds labels and coverage. Call the result with ascending bars. */
function rowMaker(
  connection: Connection,
  { series, source, stream, range, grid }: BarPlan,
): (bar: BuiltBar) => BarRow {
  const { index_type, index_id, name } = series;
  const covered = new CoveredRanges(connection, stream, series, range);
  const present = readPresentTs(connection);
  const period = source === "ohlcv" ? MICROS_PER_DAY : readPeriod(connection, series);
  return ({ start, end, open, high, low, close, volume, ticks, doubtful, digits }) => {
    const length = end - start;
    const coveredMicros = covered.measure(start, end);
    // The service changes the daily bar of a day that is not over.
    const isComplete = coveredMicros === length && end <= present;
    const expected = Math.floor(length / period);
    const remark = () => {
      if (end > present) return "in progress";
      if (!isComplete) return "not proven whole";
      if (doubtful > 0) return "doubtful ticks";
      return ticks < expected ? "fewer ticks than expected" : null;
    };
    return {
      index_type,
      index_id,
      name,
      ts: start,
      time: grid.zone.format(start),
      open,
      open_exact: formatExact(open, digits.open) ?? "",
      high,
      high_exact: formatExact(high, digits.high) ?? "",
      low,
      low_exact: formatExact(low, digits.low) ?? "",
      close,
      close_exact: formatExact(close, digits.close) ?? "",
      volume_24h: volume,
      volume_24h_exact: formatExact(volume, digits.volume_24h),
      n_ticks: ticks,
      expected_ticks: expected,
      coverage: coveredMicros / length,
      is_complete: isComplete ? 1 : 0,
      quality: remark(),
      source,
    };
  };
}

const periodSql = `SELECT period FROM targets WHERE stream = ? AND series IN (?, ?)
  ORDER BY from_ts DESC LIMIT 1`;

/** The refresh period of a series, as the views compute it. */
function readPeriod(connection: Connection, { stream, ledgerKeys }: KeyedSeries): Micros {
  return connection.findValue<Micros>(periodSql, [stream, ...ledgerKeys]) ?? DEFAULT_CADENCE;
}
