import type { Column } from "../../model/column.ts";
import { type Dictionary, isDaily, type RowStream, streamTable } from "../../model/streams.ts";
import {
  formatTimestamp,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
  parseTimestamp,
} from "../../model/time.ts";
import { readPresentTs } from "../coverage/targets.ts";
import { readStreamStates } from "../rows/stream-stats.ts";
import type { Connection } from "../sqlite/connection.ts";
import { timeOrder } from "../tables/row-parts.ts";
import { rowTables } from "../tables/row-tables.ts";

/** Files contain one series after another, sorted by name, so that readers can skip row groups by name. */
const seriesOrder: Readonly<Record<Dictionary, string>> = {
  series: "name, index_id",
  listings: "exchange, pair, exchange_id, market_id",
  contracts: "id",
};

/** The columns of the dictionary of keys that every row of a file repeats. */
export function labelColumns(stream: RowStream): readonly Column[] {
  const columns: readonly Column[] = streamTable[stream].columns;
  return columns.filter(({ source, isPartition }) => source === "label" && !isPartition);
}

/** The column that partitions the files of a stream besides the period; undefined if only the period does. */
export function partitionColumn(stream: RowStream): string | undefined {
  const columns: readonly Column[] = streamTable[stream].columns;
  return columns.find(({ isPartition }) => isPartition)?.name;
}

/** What one file of a stream spans; `whole`: all its rows. */
export type PeriodUnit = "whole" | "year" | "month" | "day";

/** What one file of a stream has: a period of a partition, or a slice of it, and the keys of the series that have rows there. */
export interface ExportPeriod {
  readonly stream: RowStream;
  /** The index type or derivative type; null for a stream without a partition column. */
  readonly part: string | null;
  readonly unit: PeriodUnit;
  /** `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; empty: everything. */
  readonly period: string;
  /** A day or an hour (`YYYY-MM-DDTHH`) of a period that is not over; else the period. */
  readonly slice: string;
  readonly from: Micros;
  readonly to: Micros;
  readonly keys: readonly number[];
}

/** Fewer daily bars than this are written again within a second or two, so they need no periods. */
const MAX_WHOLE_ROWS = 1_000_000;
/** About 250 MiB. A month with more rows is cut into days. */
const MAX_ROWS_PER_MONTH = 16_000_000;

/** A stream with fewer rows is written again within half a second, so its periods need no slices. */
const MAX_UNSLICED_ROWS = 250_000;
const HOUR = 3600 * MICROS_PER_SECOND;
/** REST confirms live ticks some time after an hour has ended. */
const CLOSING_DELAY = 2 * HOUR;

/** Periods before this have one file each. Later ones are cut into slices, so that a live minute changes a small file. */
export function closedBefore(connection: Connection, stream: RowStream): Micros {
  const isSmall = storedRows(connection, [stream]) <= MAX_UNSLICED_ROWS;
  return isSmall || isDaily(stream) ? Number.POSITIVE_INFINITY : readPresentTs(connection) - CLOSING_DELAY;
}

/** Files of the same stream have the same unit, because readers of a folder expect the same partitions everywhere. */
export function choosePeriodUnit(connection: Connection, stream: RowStream): PeriodUnit {
  const rows = storedRows(connection, [stream]);
  if (isDaily(stream)) return rows <= MAX_WHOLE_ROWS ? "whole" : "year";
  if (rows <= MAX_ROWS_PER_MONTH) return "month";
  const months = new Set(exportPeriods(connection, stream, "month").map(({ period }) => period));
  return rows / months.size <= MAX_ROWS_PER_MONTH ? "month" : "day";
}

/** The index type or derivative type of each key; null for a stream without a partition column. In the order of the files. */
export function readParts(connection: Connection, stream: RowStream): ReadonlyMap<number, string | null> {
  const { keyColumn } = rowTables[stream];
  const { dictionary } = streamTable[stream];
  return new Map(
    connection.tuples<readonly [key: number, part: string | null]>(
      `SELECT ${keyColumn}, ${partitionColumn(stream) ?? "NULL"} FROM ${dictionary} ORDER BY ${seriesOrder[dictionary]}`,
    ),
  );
}

/** The periods with rows, starting with the one of `since`. Takes one index seek per series and file. */
export function exportPeriods(
  connection: Connection,
  stream: RowStream,
  unit: PeriodUnit,
  {
    since = MIN_TS,
    closedBefore: closed = Number.POSITIVE_INFINITY,
  }: { readonly since?: Micros | undefined; readonly closedBefore?: Micros | undefined } = {},
): ExportPeriod[] {
  const { table, keyColumn } = rowTables[stream];
  const nextSql = `SELECT ts FROM ${table} WHERE ${keyColumn} = ? AND ts >= ? ORDER BY ${timeOrder(stream)} LIMIT 1`;
  const next = (key: number, from: Micros) => connection.findValue<Micros>(nextSql, [key, from]);
  const found = new Map<string, ExportPeriod & { keys: number[] }>();
  for (const [key, part] of readParts(connection, stream)) {
    let ts = next(key, since);
    while (ts !== undefined) {
      const slice = sliceOf(unit, ts, closed);
      const name = `${part ?? ""} ${slice}`;
      let exportPeriod = found.get(name);
      if (!exportPeriod) {
        const period = periodOf(unit, ts);
        exportPeriod = { stream, part, unit, period, slice, ...periodRange(slice), keys: [] };
        found.set(name, exportPeriod);
      }
      exportPeriod.keys.push(key);
      if (unit === "whole") break;
      ts = next(key, exportPeriod.to);
    }
  }
  return [...found.values()].sort((a, b) => compare(a.part ?? "", b.part ?? "") || compare(a.slice, b.slice));
}

/** The number of stored rows by the writer's own count: an upper bound for the rows of an export. */
export function storedRows(connection: Connection, streams: readonly string[] = Object.keys(rowTables)) {
  const states = readStreamStates(connection).filter(({ stream }) => streams.includes(stream));
  return states.reduce((sum, { rows }) => sum + rows, 0);
}

const PERIOD_LENGTHS = { whole: 0, year: 4, month: 7, day: 10, hour: 13 } as const;

export function periodOf(unit: keyof typeof PERIOD_LENGTHS, ts: Micros): string {
  return formatTimestamp(ts).slice(0, PERIOD_LENGTHS[unit]);
}

/** The longest of month, day and hour around `ts` that is closed; an hour need not be. */
function sliceOf(unit: PeriodUnit, ts: Micros, closed: Micros): string {
  const isClosed = (slice: string) => periodRange(slice).to <= closed;
  const period = periodOf(unit, ts);
  if (unit === "whole" || unit === "year" || isClosed(period)) return period;
  const day = periodOf("day", ts);
  return isClosed(day) ? day : periodOf("hour", ts);
}

/** The longest period whose name has so many letters: from its start this leads into the next one. */
const LONGEST: Readonly<Record<number, Micros>> = {
  4: 366 * MICROS_PER_DAY,
  7: 31 * MICROS_PER_DAY,
  10: MICROS_PER_DAY,
  13: HOUR,
};

const startOf = (period: string) => parseTimestamp(`${period}${"0000-01-01T00:00:00Z".slice(period.length)}`);

/** The ends of everything are times that can be formatted as days. */
export function periodRange(period: string): { from: Micros; to: Micros } {
  const from = startOf(period) ?? MIN_TS;
  if (period === "") return { from, to: MAX_TS };
  const next = formatTimestamp(from + (LONGEST[period.length] ?? 0)).slice(0, period.length);
  return { from, to: Math.min(startOf(next) ?? MAX_TS, MAX_TS) };
}

const MIN_TS = parseTimestamp("0000-01-01T00:00:00Z") ?? Number.MIN_SAFE_INTEGER;
const MAX_TS = parseTimestamp("9999-12-31T00:00:00Z") ?? Number.MAX_SAFE_INTEGER;
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
