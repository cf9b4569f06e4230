import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { ofSeries, tickColumns } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatExact, parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import type { AsOfRow, BarSource } from "../rows.ts";
import { chooseSource, streamOf } from "./bar-reader.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import type { KeyedSeries } from "./series-names.ts";
import type { TimeZone } from "./time-zone.ts";

interface Found {
  readonly ts: Micros;
  readonly price: number;
  readonly priceDigits: string | undefined;
  readonly volume: number | null;
  readonly volumeDigits: string | undefined;
  readonly quality: string | null;
}

interface AsOfSettings {
  readonly zone: TimeZone;
  readonly source?: BarSource | undefined;
}

/** What a series was worth at each moment. Call it in a read transaction. */
export function* readAsOf(
  connection: Connection,
  series: KeyedSeries,
  moments: readonly Micros[],
  settings: AsOfSettings,
): Generator<AsOfRow> {
  for (const at of moments) yield readMoment(connection, series, at, settings);
}

function readMoment(
  connection: Connection,
  series: KeyedSeries,
  at: Micros,
  { zone, source: given }: AsOfSettings,
): AsOfRow {
  const { key, index_type, index_id, name } = series;
  const source = chooseSource(series, given);
  const find = source === "ticks" ? findTick : findDailyClose;
  const found: Partial<Found> | undefined = key === null ? undefined : find(connection, series, at);
  const { ts = null, price = null, priceDigits, volume = null, volumeDigits, quality = null } = found ?? {};
  return {
    ...{ index_type, index_id, name, at_ts: at, at: zone.format(at) },
    ts,
    time: ts === null ? null : zone.format(ts),
    price,
    price_exact: formatExact(price, priceDigits),
    volume,
    volume_exact: formatExact(volume, volumeDigits),
    age_seconds: ts === null ? null : (at - ts) / MICROS_PER_SECOND,
    is_complete: ts !== null && isCovered(connection, series, source, { from: ts, to: at }) ? 1 : 0,
    quality,
    source,
  };
}

type TickBefore = readonly [ts: Micros, price: number, volume: number | null, details: string | null];

export function findTick(connection: Connection, series: KeyedSeries, at: Micros): Found | undefined {
  const { price: priceSql } = tickColumns(series);
  const before = ofSeries(series.stream, `ts <= ? AND ${priceSql} IS NOT NULL`, "DESC");
  const sql = `SELECT ts, ${priceSql}, volume, details ${before} LIMIT 1`;
  const row = connection.findTuple<TickBefore>(sql, [series.key, at]);
  if (!row) return undefined;
  const [ts, price, volume, details] = row;
  const { [series.figure]: priceDigits, volume: volumeDigits, quality = null } = parseRowDetails(details);
  return { ts, price, priceDigits, volume, volumeDigits, quality };
}

type CloseBefore = readonly [ts: Micros, close: number, volume: number | null, details: string | null];

const closeSql = `SELECT ts, close, volume, details FROM daily_bar_rows
  WHERE series = ? AND ts < ? AND close IS NOT NULL ORDER BY ts DESC LIMIT 1`;

/** A close counts from the end of its day on. */
function findDailyClose(connection: Connection, { key }: KeyedSeries, at: Micros): Found | undefined {
  const row = connection.findTuple<CloseBefore>(closeSql, [key, startOfDay(at)]);
  if (!row) return undefined;
  const [start, price, volume, details] = row;
  const { close: priceDigits, volume: volumeDigits, quality = null } = parseRowDetails(details);
  return { ts: start + MICROS_PER_DAY, price, priceDigits, volume, volumeDigits, quality };
}

/** Ticks: from the tick to the moment. Daily bars: from the day of the close to the last day that was over. */
function isCovered(
  connection: Connection,
  series: KeyedSeries,
  source: BarSource,
  { from: ts, to: at }: TimeRange,
): boolean {
  const range =
    source === "ticks"
      ? { from: ts, to: at + 1 }
      : { from: ts - MICROS_PER_DAY, to: Math.floor(at / MICROS_PER_DAY) * MICROS_PER_DAY };
  const covered = new CoveredRanges(connection, streamOf(series, source), series, range);
  return covered.measure(range.from, range.to) === range.to - range.from;
}
