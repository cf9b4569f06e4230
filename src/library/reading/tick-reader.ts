import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { formatExact, parseRowDetails } from "../../warehouse/rows/row-details.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { TickArrays, TickNumber, TickRow } from "../rows.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import type { KeyedSeries } from "./series-names.ts";
import type { TimeZone } from "./time-zone.ts";

/** A row of the table. */
type StoredTick = readonly [
  ts: Micros,
  price: number | null,
  volume: number | null,
  tickVolume: number | null,
  source: number,
  details: string | null,
];

/** What bars need of a tick. */
export type PricedTick = readonly [
  ts: Micros,
  price: number | null,
  volume: number | null,
  details: string | null,
];

const ROWS_PER_BLOCK = 4_096;

const blockSql = (columns: string) => `SELECT ${columns} FROM index_tick_rows
  WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts LIMIT ${ROWS_PER_BLOCK}`;
const tickBlockSql = blockSql("ts, price, volume, tick_volume, source, details");
const priceBlockSql = blockSql("ts, price, volume, details");

/** Reads what bars need of a series' ticks, in order. For one state of the warehouse, read all blocks in one transaction. */
export function readPriceBlocks(
  connection: Connection,
  key: number,
  range: TimeRange,
): Generator<readonly PricedTick[]> {
  return readBlocks<PricedTick>(connection, priceBlockSql, key, range);
}

function* readBlocks<Row extends readonly [ts: Micros, ...unknown[]]>(
  connection: Connection,
  sql: string,
  key: number | null,
  { from, to }: TimeRange,
): Generator<readonly Row[]> {
  if (key === null) return;
  const read = connection.statement<Row>(sql).raw();
  for (let start = from; ; ) {
    const block = read.all([key, start, to]);
    const last = block.at(-1);
    if (last === undefined) return;
    yield block;
    if (block.length < ROWS_PER_BLOCK) return;
    start = last[0] + 1;
  }
}

/** Reads the ticks of a series as rows. */
export function* readTickRows(
  connection: Connection,
  series: KeyedSeries,
  range: TimeRange,
  zone: TimeZone,
): Generator<TickRow> {
  if (series.key === null) return;
  const { index_type, index_id, name } = series;
  const covered = new CoveredRanges(connection, "index_ticks", series.key, range);
  for (const block of readBlocks<StoredTick>(connection, tickBlockSql, series.key, range)) {
    for (const [ts, price, volume, tickVolume, source, detailsText] of block) {
      const details = parseRowDetails(detailsText);
      yield {
        index_type,
        index_id,
        name,
        ts,
        time: zone.format(ts),
        price,
        price_exact: formatExact(price, details.price),
        volume,
        volume_exact: formatExact(volume, details.volume),
        tick_volume: tickVolume,
        tick_volume_exact: formatExact(tickVolume, details.tick_volume),
        is_settled: covered.contains(ts) ? 1 : 0,
        source: source === 0 ? "rest" : "live",
        quality: details.quality ?? null,
        extra: details.extra ?? null,
      };
    }
  }
}

const inRange = "FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts";
/** Columns are read in windows of this length: short-lived values cost less than half a million at once. */
const WINDOW_MICROS = MICROS_PER_DAY;

/**
 * Reads the ticks of a series as columns. One query per column: it returns bare numbers, which costs a third of rows.
 * Call it in a read transaction.
 */
export function readTickArrays(
  connection: Connection,
  series: KeyedSeries,
  { from, to }: TimeRange,
  numbers: readonly TickNumber[],
): TickArrays {
  const { key, index_type, index_id, name } = series;
  const columns: Record<TickNumber | "ts", Float64Array[]> = {
    ts: [],
    price: [],
    volume: [],
    tick_volume: [],
  };
  if (key !== null) {
    const next = connection.statement<Micros>(`SELECT ts ${inRange} LIMIT 1`).pluck();
    for (let start = next.get([key, from, to]) ?? to; start < to; ) {
      const end = Math.min(to, start + WINDOW_MICROS);
      for (const column of ["ts", ...numbers] as const) {
        const values = connection.values<number | null>(`SELECT ${column} ${inRange}`, [key, start, end]);
        columns[column].push(toNumbers(values));
      }
      start = next.get([key, end, to]) ?? to;
    }
  }
  const ts = toTimestamps(join(columns.ts));
  return {
    index_type,
    index_id,
    name,
    length: ts.length,
    ts,
    price: join(columns.price),
    volume: join(columns.volume),
    tick_volume: join(columns.tick_volume),
  };
}

function join(parts: readonly Float64Array[]): Float64Array {
  const result = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

const WORD = 2 ** 32;
const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** Writes the two halves of each integer: making a BigInt of each would take three times as long. */
export function toTimestamps(values: ArrayLike<Micros>): BigInt64Array {
  const result = new BigInt64Array(values.length);
  const words = new Uint32Array(result.buffer);
  const [low, high] = isLittleEndian ? [0, 1] : [1, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    const upper = Math.floor(value / WORD);
    words[2 * i + low] = value - upper * WORD;
    words[2 * i + high] = upper;
  }
  return result;
}

export function toNumbers(values: ArrayLike<number | null>): Float64Array {
  const result = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) result[i] = values[i] ?? Number.NaN;
  return result;
}
