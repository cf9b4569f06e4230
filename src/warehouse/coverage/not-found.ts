import { type HistoryStream, streamTable } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredTime } from "../schema/rows.ts";
import type { Connection } from "../sqlite/connection.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type LedgerKey, retract, settle } from "./ledger.ts";

/** Reason of the ranges that a 404 settled. */
export const NOT_FOUND_REASON = "not found";

/** Series for which the service once answered 404. If it serves records now, those ranges are fetched again. */
export function readNotFoundSeries(connection: Connection, stream: HistoryStream): Set<number> {
  const series = connection
    .statement<number>("SELECT DISTINCT series FROM settled_ranges WHERE stream = ? AND reason = ?")
    .pluck()
    .all([stream, NOT_FOUND_REASON]);
  return new Set(series);
}

/** Whether the service once answered 404 for this series. */
export function wasNotFound(connection: Connection, { stream, series }: LedgerKey): boolean {
  const sql = "SELECT 1 FROM settled_ranges WHERE stream = ? AND series = ? AND reason = ? LIMIT 1";
  return connection.statement(sql).get([stream, series, NOT_FOUND_REASON]) !== undefined;
}

/**
 * The service answered 404 for the index. Up to the newest stored row the range is lost, because the service once served
 * it; after that row the range is empty.
 */
export function settleNotFound(
  transaction: Transaction,
  key: LedgerKey & { readonly stream: HistoryStream },
  range: TimeRange,
): void {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored } = rowTables[key.stream];
  const sql = `SELECT max(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const bounds = [key.series, storedTime(range.from), storedTime(range.to)];
  const newest = transaction.value<StoredTime | null>(sql, bounds);
  const { step } = streamTable[key.stream];
  const emptyFrom = newest === null ? range.from : Math.min(range.to, tsOfStored(newest) + step);
  if (range.from < emptyFrom)
    settle(transaction, key, { from: range.from, to: emptyFrom }, "lost", NOT_FOUND_REASON);
  if (emptyFrom < range.to)
    settle(transaction, key, { from: emptyFrom, to: range.to }, "empty", NOT_FOUND_REASON);
}

/** The service has the index after all: retracts what a 404 settled. */
export function reopenNotFound(transaction: Transaction, key: LedgerKey): void {
  const ranges = transaction
    .statement<TimeRange>(
      'SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE stream = ? AND series = ? AND reason = ?',
    )
    .all([key.stream, key.series, NOT_FOUND_REASON]);
  for (const range of ranges) retract(transaction, key, range);
}
