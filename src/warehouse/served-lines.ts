import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import type { Connection } from "./connection.ts";
import { rowTables } from "./row-tables.ts";
import { UNSERVED } from "./unserved.ts";

/** An index that the service has served, and by what it would be found again. */
export interface ServedLine {
  readonly indexType: string;
  readonly indexId: string;
  /** The newest row of it. */
  readonly ts: Micros;
}

/** Whether a row of the line stands at `since` or later. */
export function hasRowsSince(
  connection: Connection,
  { stream, series }: { readonly stream: WalkedStream; readonly series: number },
  since: Micros,
): boolean {
  const { table, keyColumn, momentColumn, moment } = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} >= ? LIMIT 1`;
  return connection.statement(sql).get([series, moment(since)]) !== undefined;
}

/** Of the followed lines of a stream, the one of another index whose newest row is the newest of all. */
export function otherServedLine(
  connection: Connection,
  { stream, series }: { readonly stream: WalkedStream; readonly series: number },
  since: Micros,
): ServedLine | undefined {
  const { table, keyColumn, momentColumn, moment, momentTs } = rowTables[stream];
  const row = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId,
          (SELECT max(r.${momentColumn}) FROM ${table} r WHERE r.${keyColumn} = w.series) AS newest
        FROM wanted_ranges w JOIN series s ON s.series = w.series
        WHERE w.stream = ? AND w.to_ts IS NULL AND w.series <> ? AND newest >= ? AND NOT EXISTS
          (SELECT 1 FROM settled_ranges g WHERE g.stream = w.stream AND g.series = w.series AND g.reason = ?)
        ORDER BY newest DESC LIMIT 1`,
    )
    .get([stream, series, moment(since), UNSERVED]) as
    | { indexType: string; indexId: string; newest: number | string }
    | undefined;
  return row && { indexType: row.indexType, indexId: row.indexId, ts: momentTs(row.newest) };
}
