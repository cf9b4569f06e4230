import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { ofSeries, tickColumns, unsortedOfSeries } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatExact, parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import type { TickArrays, TickNumber, TickRow } from "../rows.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import type { KeyedSeries, TickPlan } from "./series-names.ts";

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

const IN_RANGE = "ts >= ? AND ts < ?";

function blockSql(series: KeyedSeries, names: readonly (keyof ReturnType<typeof tickColumns>)[]): string {
  const columns = tickColumns(series);
  return `SELECT ${names.map((name) => columns[name]).join(", ")} ${ofSeries(series.stream, IN_RANGE)} LIMIT ${ROWS_PER_BLOCK}`;
}

/** Reads what bars need of a series' ticks, in order. For one state of the warehouse, read all blocks in one transaction. */
export function readPriceBlocks(
  connection: Connection,
  { over, ...series }: KeyedSeries,
  range: TimeRange,
): Generator<readonly PricedTick[]> {
  const sql = blockSql(series, ["ts", "price", "volume", "details"]);
  const blocks = readBlocks<PricedTick>(connection, sql, series.key, range);
  return over ? divideBlocks(connection, blocks, over, range) : blocks;
}

/** Each price over the newest one of the other series by then; without one it has none. */
function* divideBlocks(
  connection: Connection,
  blocks: Iterable<readonly PricedTick[]>,
  over: KeyedSeries,
  range: TimeRange,
): Generator<readonly PricedTick[]> {
  const newest = newestPrices(connection, over, range);
  for (const block of blocks)
    yield block.map(([ts, own, , details]): PricedTick => {
      const [, divisor = 0, , doubt = null] = newest(ts) ?? [];
      const quality = parseRowDetails(details).quality ?? parseRowDetails(doubt).quality;
      return [
        ts,
        own === null || !divisor ? null : own / divisor,
        null,
        quality ? JSON.stringify({ quality }) : null,
      ];
    });
}

/** Finds the newest tick with a price at or before each moment of a range. The moments ascend. */
export function newestPrices(connection: Connection, series: KeyedSeries, { from, to }: TimeRange) {
  const { price } = tickColumns(series);
  const before = ofSeries(series.stream, `ts <= ? AND ${price} IS NOT NULL`, "DESC");
  const start = connection.findValue<Micros>(`SELECT ts ${before} LIMIT 1`, [series.key, from]) ?? from;
  const ticks = eachTick(readPriceBlocks(connection, series, { from: start, to }));
  let next = ticks.next().value;
  let newest: PricedTick | undefined;
  return (moment: Micros): PricedTick | undefined => {
    for (; next && next[0] <= moment; next = ticks.next().value) if (next[1] !== null) newest = next;
    return newest;
  };
}

function* eachTick(blocks: Iterable<readonly PricedTick[]>): Generator<PricedTick, undefined> {
  for (const block of blocks) yield* block;
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

/** How many ticks a range has. */
export function countTicks(connection: Connection, { series, range: { from, to } }: TickPlan): number {
  return connection.value<number>(`SELECT count(*) ${ofSeries(series.stream, IN_RANGE)}`, [
    series.key,
    from,
    to,
  ]);
}

/** Reads the ticks of a series as rows. */
export function* readTickRows(connection: Connection, { series, range, zone }: TickPlan): Generator<TickRow> {
  if (series.key === null) return;
  const { index_type, index_id, name, stream, figure } = series;
  const covered = new CoveredRanges(connection, stream, series, range);
  const sql = blockSql(series, ["ts", "price", "volume", "tick_volume", "source", "details"]);
  for (const block of readBlocks<StoredTick>(connection, sql, series.key, range)) {
    for (const [ts, price, volume, tickVolume, source, detailsText] of block) {
      const details = parseRowDetails(detailsText);
      yield {
        index_type,
        index_id,
        name,
        ts,
        time: zone.format(ts),
        price,
        price_exact: formatExact(price, details[figure]),
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
  const { key, stream, index_type, index_id, name } = series;
  const columns = tickColumns(series);
  // Few rows of an earlier state are out of order.
  const source = connection.knownAt ? unsortedOfSeries(stream, IN_RANGE) : ofSeries(stream, IN_RANGE);
  const parameters = [key, from, to];
  const read = (column: TickNumber | "ts") =>
    connection.values<number | null>(`SELECT ${columns[column]} ${source}`, parameters);
  const isEmpty = (column: TickNumber) => {
    const sql = `SELECT 1 ${unsortedOfSeries(stream, IN_RANGE)} AND ${columns[column]} IS NOT NULL LIMIT 1`;
    return connection.findValue(sql, parameters) === undefined;
  };
  const times = key === null ? [] : (read("ts") as Micros[]);
  const order = findOrder(times);
  const readNumbers = (column: TickNumber) => {
    if (!numbers.includes(column)) return new Float64Array();
    // Most series have no volume of a tick: to find that out costs half of reading it.
    if (isEmpty(column)) return new Float64Array(times.length).fill(Number.NaN);
    return toNumbers(read(column), order);
  };
  return {
    index_type,
    index_id,
    name,
    length: times.length,
    ts: toTimestamps(times, order),
    price: readNumbers("price"),
    volume: readNumbers("volume"),
    tick_volume: readNumbers("tick_volume"),
  };
}

/** Where the values are in ascending order; undefined if they ascend. Only those after the first descent are sorted. */
function findOrder(values: readonly number[]): Uint32Array | undefined {
  const start = values.findIndex((value, at) => value < (values[at - 1] ?? value));
  if (start < 0) return undefined;
  const valueAt = (at: number) => values[at] ?? Number.POSITIVE_INFINITY;
  const late = values.slice(start).map((_, at) => start + at);
  late.sort((a, b) => valueAt(a) - valueAt(b));
  const order = new Uint32Array(values.length);
  let [early, next] = [0, 0];
  for (let i = 0; i < order.length; i++) {
    const lateAt = late[next] ?? values.length;
    const isEarly = early < start && valueAt(early) <= valueAt(lateAt);
    order[i] = isEarly ? early++ : lateAt;
    if (!isEarly) next++;
  }
  return order;
}

/** Each BigInt would be an object: the low and the high half of a timestamp are numbers. */
export function toTimestamps(values: readonly Micros[], order?: Uint32Array): BigInt64Array {
  const result = new BigInt64Array(values.length);
  const halves = new Int32Array(result.buffer);
  for (let i = 0; i < values.length; i++) {
    const ts = values[order?.[i] ?? i] as Micros;
    halves[2 * i] = ts | 0;
    halves[2 * i + 1] = Math.floor(ts / 2 ** 32);
  }
  return result;
}

export function toNumbers(values: readonly (number | null)[], order?: Uint32Array): Float64Array {
  const result = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) result[i] = values[order?.[i] ?? i] ?? Number.NaN;
  return result;
}
