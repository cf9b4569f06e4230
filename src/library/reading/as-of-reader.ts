import {
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
  parseDuration,
  startOfDay,
} from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { ofSeries, tickColumns } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatExact, parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import type { AsOfJoinOptions, TimeInput } from "../read-options.ts";
import type { AsOfRow, AsOfValue } from "../rows.ts";
import { lengthFailure } from "./bar-grid.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import { readTime } from "./read-plan.ts";
import { type KeyedSeries, type MomentPlan, resolveSeries, type SourcedSeries } from "./series-names.ts";
import { newestPrices } from "./tick-reader.ts";
import { findTimeZone, type TimeZone } from "./time-zone.ts";

/** What a series was worth at each moment. Call it in a read transaction. */
export function readAsOf(connection: Connection, plan: MomentPlan): AsOfRow[] {
  return plan.moments.map((at) => readAsOfRow(connection, plan, at, plan.zone));
}

function readAsOfRow(connection: Connection, sourced: SourcedSeries, at: Micros, zone: TimeZone): AsOfRow {
  const { series, source } = sourced;
  const { key, index_type, index_id, name } = series;
  const find = source === "ticks" ? findTick : findDailyClose;
  const found: Partial<Priced> = (key === null ? undefined : find(connection, series, at)) ?? {};
  const { ts = null, price = null, priceDigits, volume = null, volumeDigits, quality = null } = found;
  return {
    ...{ index_type, index_id, name, at_ts: at, at: zone.format(at) },
    ts,
    time: ts === null ? null : zone.format(ts),
    price,
    price_exact: formatExact(price, priceDigits),
    volume,
    volume_exact: formatExact(volume, volumeDigits),
    age_seconds: ts === null ? null : (at - ts) / MICROS_PER_SECOND,
    is_complete: ts !== null && isCovered(connection, sourced, { from: ts, to: at }) ? 1 : 0,
    quality,
    source,
  };
}

/** The newest tick with a price at or before a moment. */
export function findTick(connection: Connection, series: KeyedSeries, at: Micros) {
  const { price } = tickColumns(series);
  const before = ofSeries(series.stream, `ts <= ? AND ${price} IS NOT NULL`, "DESC");
  const sql = `SELECT ts, ${price}, volume, details ${before} LIMIT 1`;
  return findPrice(connection, sql, [series.key, at], series.figure);
}

const closeSql = `SELECT ts + ${MICROS_PER_DAY}, close, volume, details FROM daily_bar_rows
  WHERE series = ? AND ts < ? AND close IS NOT NULL ORDER BY ts DESC LIMIT 1`;

/** A close counts from the end of its day on. */
export const findDailyClose = (connection: Connection, { key }: KeyedSeries, at: Micros) =>
  findPrice(connection, closeSql, [key, startOfDay(at)], "close");

type Priced = NonNullable<ReturnType<typeof findPrice>>;
type PricedRow = readonly [ts: Micros, price: number, volume: number | null, details: string | null];

function findPrice(connection: Connection, sql: string, values: readonly (number | null)[], figure: string) {
  const row = connection.findTuple<PricedRow>(sql, values);
  if (!row) return undefined;
  const [ts, price, volume, details] = row;
  const { [figure]: priceDigits, volume: volumeDigits, quality = null } = parseRowDetails(details);
  return { ts, price, priceDigits, volume, volumeDigits, quality };
}

/** Ticks: from the tick to the moment. Daily bars: from the day of the close to the last day that was over. */
function isCovered(
  connection: Connection,
  { series, source, stream }: SourcedSeries,
  { from: ts, to: at }: TimeRange,
): boolean {
  const range =
    source === "ticks"
      ? { from: ts, to: at + 1 }
      : { from: ts - MICROS_PER_DAY, to: Math.floor(at / MICROS_PER_DAY) * MICROS_PER_DAY };
  const covered = new CoveredRanges(connection, stream, series, range);
  return covered.measure(range.from, range.to) === range.to - range.from;
}

const nothing: AsOfValue = { asof_price: null, asof_ts: null, asof_age_seconds: null, asof_complete: 0 };

/** Adds to each row what its series was worth at its time. Call it in a read transaction. */
export function joinAsOf<Row extends object>(
  connection: Connection,
  rows: readonly Row[],
  { on = "time", by = "name", indexType, of, maxAge, tz }: AsOfJoinOptions,
): (Row & AsOfValue)[] {
  const [now, zone] = [readPresentTs(connection), findTimeZone(tz)];
  const seconds = maxAge === undefined ? Number.POSITIVE_INFINITY : parseDuration(maxAge);
  if (seconds === undefined) throw lengthFailure(`an age cannot be ${maxAge}`);
  const cell = (row: Row, column: string) => (row as Readonly<Record<string, unknown>>)[column];
  const moments = rows.map((row) => readTime(cell(row, on) as TimeInput, now, zone));
  if (rows.length === 0) return [];
  const byName = Map.groupBy(rows.keys(), (at) => String(cell(rows[at] as Row, by)));
  // One by one: two names may be of one series.
  const all = [...byName.keys()].map((name) => resolveSeries(connection, name, { indexType, of })[0]);
  const joined = new Array<Row & AsOfValue>(rows.length);
  [...byName.values()].forEach((own, n) => {
    const isBefore = (at: number, n: number) =>
      n === 0 || (moments[own[n - 1] as number] as Micros) <= (moments[at] as Micros);
    // Trades are in order of time already, as a rule: sorting a million takes longer than joining them.
    if (!own.every(isBefore)) own.sort((a, b) => (moments[a] as Micros) - (moments[b] as Micros));
    const range = {
      from: moments[own[0] as number] as Micros,
      to: (moments[own.at(-1) as number] as Micros) + 1,
    };
    const valueAt = readValues(connection, all[n] as KeyedSeries, range, seconds * MICROS_PER_SECOND);
    for (const at of own) joined[at] = { ...(rows[at] as Row), ...valueAt(moments[at] as Micros) };
  });
  return joined;
}

/** The value at each moment of a range; the moments ascend. */
function readValues(connection: Connection, series: KeyedSeries, range: TimeRange, maxAge: Micros) {
  const { from, to } = range;
  const newest = newestPrices(connection, series, range);
  const start = newest(from)?.[0] ?? from;
  const covered = new CoveredRanges(connection, series.stream, series, { from: start, to });
  return (at: Micros): AsOfValue => {
    const [ts, price = null] = newest(at) ?? [];
    if (ts === undefined || at - ts > maxAge) return nothing;
    const isComplete = covered.measure(ts, at + 1) === at + 1 - ts;
    return {
      asof_price: price,
      asof_ts: ts,
      asof_age_seconds: (at - ts) / MICROS_PER_SECOND,
      asof_complete: isComplete ? 1 : 0,
    };
  };
}
