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

type TickTable = "index_tick_rows" | "current_tick_rows" | "replaced_tick_rows";
const inRange = (table: TickTable) => `FROM ${table} WHERE series = ? AND ts >= ? AND ts < ?`;
/** Columns are read in windows of this length: short-lived values cost less than half a million at once. */
const WINDOW_MICROS = MICROS_PER_DAY;
/** One a second: a finer grid would be a wrong guess. */
const MAX_WINDOW_TICKS = 86_400;

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
    const next = connection.statement<Micros>(extentSql("index_tick_rows", "", 1)).pluck();
    for (let start = next.get([key, from, to]) ?? to; start < to; ) {
      const window = { from: start, to: Math.min(to, start + WINDOW_MICROS) };
      const read = readWindow(connection, key, numbers, window);
      for (const name of ["ts", ...numbers] as const) columns[name].push(read[name] ?? new Float64Array());
      start = next.get([key, window.to, to]) ?? to;
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

type Columns = Partial<Record<TickNumber | "ts", Float64Array>>;

/** The columns of a window. Of an earlier state both parts of the table are read, and merged if the second has any rows. */
function readWindow(
  connection: Connection,
  key: number,
  numbers: readonly TickNumber[],
  window: TimeRange,
): Columns {
  if (connection.knownAt === undefined) return readPart(connection, "index_tick_rows", key, numbers, window);
  const current = readPart(connection, "current_tick_rows", key, numbers, window);
  const replaced = readPart(connection, "replaced_tick_rows", key, numbers, window);
  return replaced.ts?.length ? mergeColumns(current, replaced) : current;
}

function readPart(
  connection: Connection,
  table: TickTable,
  key: number,
  numbers: readonly TickNumber[],
  window: TimeRange,
): Columns {
  const [first, ...others] = numbers;
  const read = (column: TickNumber | "ts") =>
    toNumbers(
      connection.values<number | null>(`SELECT ${column} ${inRange(table)} ORDER BY ts`, [
        key,
        window.from,
        window.to,
      ]),
    );
  const onGrid = first && readOnGrid(connection, table, key, first, window);
  const part: Columns = { ts: onGrid?.ts ?? read("ts") };
  if (part.ts?.length === 0) return part;
  if (first !== undefined) part[first] = onGrid?.values ?? read(first);
  for (const column of others) part[column] = read(column);
  return part;
}

/** Both are ascending, and have no timestamp in common. */
function mergeColumns(a: Columns, b: Columns): Columns {
  const [first = new Float64Array(), second = new Float64Array()] = [a.ts, b.ts];
  const names = Object.keys(b) as (TickNumber | "ts")[];
  const merged: Columns = {};
  for (const name of names) {
    const [from, other] = [a[name] ?? new Float64Array(), b[name] ?? new Float64Array()];
    const column = new Float64Array(first.length + second.length);
    for (let at = 0, i = 0, j = 0; at < column.length; at++) {
      const isFirst = j === second.length || (first[i] ?? Number.POSITIVE_INFINITY) < (second[j] as Micros);
      column[at] = (isFirst ? from[i++] : other[j++]) as number;
    }
    merged[name] = column;
  }
  return merged;
}

const extentSql = (table: TickTable, order: "" | "DESC", limit: number) =>
  `SELECT ts ${inRange(table)} ORDER BY ts ${order} LIMIT ${limit}`;
const onGridSql = (table: TickTable, column: TickNumber) =>
  `SELECT CASE WHEN ts % ? = ? THEN ${column} ELSE 'off' END ${inRange(table)} ORDER BY ts`;

/**
 * A column of a window, and the timestamps without reading them: they are unique, so if all lie on the grid of the first two,
 * and are as many as it has points up to the last, they are that grid. Undefined if they are not.
 */
function readOnGrid(
  connection: Connection,
  table: TickTable,
  key: number,
  column: TickNumber,
  { from, to }: TimeRange,
): { readonly ts: Float64Array; readonly values: Float64Array } | undefined {
  const bounds = [key, from, to];
  const [first = 0, second = 0] = connection.values<Micros>(extentSql(table, "", 2), bounds);
  const last = connection.findValue<Micros>(extentSql(table, "DESC", 1), bounds) ?? 0;
  const step = second - first;
  const count = (last - first) / step + 1;
  // Below a dozen there is little to gain, and the guess is often wrong.
  if (!Number.isInteger(count) || count < 12 || count > MAX_WINDOW_TICKS) return undefined;
  const read = connection.values<number | null | string>(onGridSql(table, column), [
    BigInt(step),
    BigInt(first % step),
    ...bounds,
  ]);
  if (read.length !== count) return undefined;
  const [ts, values] = [new Float64Array(count), new Float64Array(count)];
  for (let at = 0; at < count; at++) {
    const value = read[at];
    if (typeof value === "string") return undefined;
    values[at] = value ?? Number.NaN;
    ts[at] = first + at * step;
  }
  return { ts, values };
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
