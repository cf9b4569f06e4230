import { type HistoryStream, streamTable } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type LedgerLine, retract, settle } from "./ledger.ts";

/** The reason of what a 404 settled. */
export const UNSERVED = "not found";

/** Lines that the service once answered with 404: if it has records now, what was called empty is asked again. */
export function unservedLines(connection: Connection, stream: HistoryStream): Set<number> {
  const series = connection
    .statement("SELECT DISTINCT series FROM settled_ranges WHERE stream = ? AND reason = ?")
    .pluck()
    .all([stream, UNSERVED]) as number[];
  return new Set(series);
}

/** Whether the service once answered this line with 404. */
export function isUnserved(connection: Connection, { stream, series }: LedgerLine): boolean {
  const sql = "SELECT 1 FROM settled_ranges WHERE stream = ? AND series = ? AND reason = ? LIMIT 1";
  return connection.statement(sql).get([stream, series, UNSERVED]) !== undefined;
}

/**
 * The service has no such index. What it has no records for is empty; up to the last record that it once did serve and
 * no longer does, the range is lost.
 */
export function settleUnserved(
  transaction: Transaction,
  line: LedgerLine & { readonly stream: HistoryStream },
  range: TimeRange,
): void {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored } = rowTables[line.stream];
  const sql = `SELECT max(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const bounds = [line.series, storedTime(range.from), storedTime(range.to)];
  const last = transaction.statement(sql).pluck().get(bounds) as string | number | null;
  const { step } = streamTable[line.stream];
  const emptyFrom = last === null ? range.from : Math.min(range.to, tsOfStored(last) + step);
  if (range.from < emptyFrom)
    settle(transaction, line, { from: range.from, to: emptyFrom }, "lost", UNSERVED);
  if (emptyFrom < range.to) settle(transaction, line, { from: emptyFrom, to: range.to }, "empty", UNSERVED);
}

/** The service has the index after all: what a 404 settled is open again. */
export function reopenUnserved(transaction: Transaction, line: LedgerLine): void {
  const ranges = transaction
    .statement(
      'SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE stream = ? AND series = ? AND reason = ?',
    )
    .all([line.stream, line.series, UNSERVED]) as TimeRange[];
  for (const range of ranges) retract(transaction, line, range);
}
