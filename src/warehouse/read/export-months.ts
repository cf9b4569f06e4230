import type { Column } from "../../model/column.ts";
import { type Dictionary, type RowStream, streamTable } from "../../model/streams.ts";
import { formatTimestamp, type Micros, parseTimestamp } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
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

/** The column that partitions the files of a stream besides the month; undefined if only the month does. */
export function partitionColumn(stream: RowStream): string | undefined {
  const columns: readonly Column[] = streamTable[stream].columns;
  return columns.find(({ isPartition }) => isPartition)?.name;
}

/** One month of one partition of a stream, and the keys of the series that have rows in it. */
export interface ExportMonth {
  readonly stream: RowStream;
  /** The index type or derivative type; null for a stream without a partition column. */
  readonly part: string | null;
  /** `YYYY-MM` */
  readonly month: string;
  readonly from: Micros;
  readonly to: Micros;
  readonly keys: readonly number[];
}

/** The months with rows, starting with the month of `since`. Takes one index seek per series and month. */
export function exportMonths(
  connection: Connection,
  stream: RowStream,
  since = Number.NEGATIVE_INFINITY,
): ExportMonth[] {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored } = rowTables[stream];
  const { dictionary } = streamTable[stream];
  const entries = connection
    .statement(
      `SELECT ${keyColumn}, ${partitionColumn(stream) ?? "NULL"} FROM ${dictionary} ORDER BY ${seriesOrder[dictionary]}`,
    )
    .raw()
    .all() as [number, string | null][];
  const first = connection
    .statement(`SELECT min(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ?`)
    .pluck();
  const next = connection
    .statement(`SELECT min(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ?`)
    .pluck();
  const bounded = Number.isFinite(since);
  const found = new Map<string, ExportMonth & { keys: number[] }>();
  for (const [key, part] of entries) {
    let at = (bounded ? next.get([key, storedTime(since)]) : first.get([key])) as number | string | null;
    while (at !== null) {
      const month = monthOf(tsOfStored(at));
      const name = `${part ?? ""} ${month}`;
      const { from, to } = monthRange(month);
      let exportMonth = found.get(name);
      if (!exportMonth) {
        exportMonth = { stream, part, month, from, to, keys: [] };
        found.set(name, exportMonth);
      }
      exportMonth.keys.push(key);
      at = next.get([key, storedTime(to)]) as number | string | null;
    }
  }
  return [...found.values()].sort((a, b) => compare(a.part ?? "", b.part ?? "") || compare(a.month, b.month));
}

/** The number of stored rows by the writer's own count: an upper bound for the rows of an export. */
export function storedRows(connection: Connection): number {
  const names = Object.keys(rowTables).map((stream) => `'${stream}'`);
  const sql = `SELECT coalesce(sum(rows), 0) FROM stream_states WHERE stream IN (${names.join(", ")})`;
  return connection.statement(sql).pluck().get() as number;
}

export function monthOf(ts: Micros): string {
  return formatTimestamp(ts).slice(0, 7);
}

export function monthRange(month: string): { from: Micros; to: Micros } {
  const [year = 0, number = 0] = month.split("-").map(Number);
  const following =
    number === 12 ? `${padded(year + 1, 4)}-01` : `${padded(year, 4)}-${padded(number + 1, 2)}`;
  return { from: startOf(month), to: startOf(following) };
}

function startOf(month: string): Micros {
  const ts = parseTimestamp(`${month}-01T00:00:00Z`);
  // The month after 9999-12 has no four-digit year.
  return ts ?? Number.MAX_SAFE_INTEGER;
}

const padded = (value: number, length: number) => String(value).padStart(length, "0");
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
