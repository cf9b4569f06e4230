import { hasHistory, keyColumns, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readSettledIn } from "../coverage/ledger.ts";
import type { Connection } from "../sqlite/connection.ts";
import { newestRow, timeOrder } from "../tables/row-parts.ts";
import { rowTables, type SqlValue } from "../tables/row-tables.ts";

/*
 * What the forwarder to the shared warehouse reads. Each function is one synchronous read, so that no snapshot of the
 * file stays open while the network is waited for.
 */

/** [key, ts, columns of the table …, details] */
export type ForwardedRow = readonly [key: number, ts: Micros, ...columns: SqlValue[]];

/** Names of the values of a `ForwardedRow`. */
export function forwardedColumns(stream: RowStream): readonly string[] {
  const { keyColumn, columns } = rowTables[stream];
  return [keyColumn, "ts", ...columns];
}

/**
 * The rows of a range with their coverage, both of the same moment: at most `maxRows`, in order of time. `to`: where they end, before the
 * end of the range if that has too many.
 */
export function readRange(
  connection: Connection,
  { stream, key }: { readonly stream: RowStream; readonly key: number },
  range: TimeRange,
  maxRows: number,
) {
  const { table, keyColumn } = rowTables[stream];
  const sql = `SELECT ${forwardedColumns(stream).join(", ")} FROM ${table} WHERE ${keyColumn} = ? AND ts >= ? AND ts < ? ORDER BY ${timeOrder(stream)} LIMIT ?`;
  return connection.database.transaction(() => {
    const rows = connection.tuples<ForwardedRow>(sql, [key, range.from, range.to, maxRows + 1]);
    const excess = rows.length > maxRows ? rows.pop() : undefined;
    const to = excess === undefined ? range.to : excess[1];
    // The ledger of a snapshot stream has other keys.
    const ledger = hasHistory(stream)
      ? readSettledIn(connection, { stream, series: key }, { ...range, to })
      : [];
    return { rows, ledger, to };
  })();
}

/** Every key that has a ledger. */
export function readSettledKeys(connection: Connection): { stream: RowStream; series: number }[] {
  return connection.rows<{ stream: RowStream; series: number }>(
    "SELECT DISTINCT stream, series FROM settled_ranges",
  );
}

/** The keys of a stream's dictionary. */
export function readRowKeys(connection: Connection, stream: RowStream): number[] {
  const { dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  return connection.values<number>(`SELECT ${key} FROM ${dictionary} ORDER BY ${key}`);
}

export interface NewestRow {
  readonly key: number;
  readonly ts: Micros;
}

/** The time of the newest row of each key that has one. */
export function readNewestRows(connection: Connection, stream: RowStream): NewestRow[] {
  const newest = connection.statement<Micros | null>(`SELECT ${newestRow(stream, "?", "true")}`);
  return readRowKeys(connection, stream).flatMap((key) => {
    const ts = newest.pluck().get([key]) ?? null;
    return ts === null ? [] : [{ key, ts }];
  });
}

/** The rows of a small relation, its columns in the order given. `after`: only rows whose first column is greater. */
export function readSmallRelation(
  connection: Connection,
  table: string,
  columns: readonly string[],
  { after, limit = -1 }: { readonly after?: number; readonly limit?: number } = {},
): SqlValue[][] {
  const names = columns.map((name) => `"${name}"`);
  const condition = after === undefined ? "" : ` WHERE ${names[0]} > ?`;
  return connection.tuples<SqlValue[]>(
    `SELECT ${names.join(", ")} FROM ${table}${condition} ORDER BY ${names[0]} LIMIT ?`,
    [...(after === undefined ? [] : [after]), limit],
  );
}

/** The ledger keys whose snapshots contain the rows of a key of the stream's dictionary: its exchange, and all. */
export function readSubscriptions(connection: Connection, stream: RowStream): Map<number, number[]> {
  const { dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const exchange = dictionary === "series" ? "''" : "d.exchange_id";
  const rows = connection.tuples<readonly [key: number, series: number]>(
    `SELECT d.${key}, s.series FROM ${dictionary} d JOIN series s ON s.index_type = '' AND s.index_id IN ('', ${exchange})`,
  );
  const byKey = Map.groupBy(rows, ([each]) => each);
  return new Map([...byKey].map(([each, own]) => [each, own.map(([, series]) => series)]));
}
