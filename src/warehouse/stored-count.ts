import type { TimeRange } from "../model/time-range.ts";
import { type RowStream, type RowTable, rowTables } from "./row-tables.ts";
import type { Transaction } from "./transaction.ts";

/** How many rows of a series are stored in a range. */
export function storedCount(
  transaction: Transaction,
  { stream, series }: { stream: RowStream; series: number },
  range: TimeRange,
): number {
  const { table, keyColumn, momentColumn, moment }: RowTable<never> = rowTables[stream];
  const sql = `SELECT count(*) FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} >= ? AND ${momentColumn} < ?`;
  return transaction
    .statement(sql)
    .pluck()
    .get([series, moment(range.from), moment(range.to)]) as number;
}
