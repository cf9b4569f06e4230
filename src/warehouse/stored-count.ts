import type { TimeRange } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";
import { type RowStream, type RowTable, rowTables } from "./row-tables.ts";

/** How many rows of a series are stored in a range. */
export function storedCount(
  connection: Pick<Connection, "statement">,
  { stream, series }: { stream: RowStream; series: number },
  range: TimeRange,
): number {
  const { table, keyColumn, momentColumn, moment }: RowTable<never> = rowTables[stream];
  const sql = `SELECT count(*) FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} >= ? AND ${momentColumn} < ?`;
  return connection
    .statement(sql)
    .pluck()
    .get([series, moment(range.from), moment(range.to)]) as number;
}
