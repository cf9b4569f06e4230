import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { ofSeries, tickColumns } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatExact, parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import type { AsOfRow } from "../rows.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import type { KeyedSeries, SourcedSeries } from "./series-names.ts";
import type { TimeZone } from "./time-zone.ts";

/** What a series was worth at a moment. Call it in a read transaction. */
export function readAsOf(
  connection: Connection,
  sourced: SourcedSeries,
  at: Micros,
  zone: TimeZone,
): AsOfRow {
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

function findTick(connection: Connection, series: KeyedSeries, at: Micros) {
  const { price } = tickColumns(series);
  const before = ofSeries(series.stream, `ts <= ? AND ${price} IS NOT NULL`, "DESC");
  const sql = `SELECT ts, ${price}, volume, details ${before} LIMIT 1`;
  return findPrice(connection, sql, [series.key, at], series.figure);
}

/** A close counts from the end of its day on. */
const closeSql = `SELECT ts + ${MICROS_PER_DAY}, close, volume, details FROM daily_bar_rows
  WHERE series = ? AND ts < ? AND close IS NOT NULL ORDER BY ts DESC LIMIT 1`;

const findDailyClose = (connection: Connection, { key }: KeyedSeries, at: Micros) =>
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
