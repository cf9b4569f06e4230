import { type HistoryStream, streamTable } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { settledRanges } from "../schema/coverage.ts";
import type { StoredTime } from "../schema/rows.ts";
import type { Connection, Orm } from "../sqlite/connection.ts";
import { and, eq } from "../sqlite/drizzle.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isOfKey, type LedgerKey, retract, settle } from "./ledger.ts";

/** Reason of the ranges that a 404 settled. */
export const NOT_FOUND_REASON = "not found";

const isNotFound = eq(settledRanges.reason, NOT_FOUND_REASON);

/** Series for which the service once answered 404. If it serves records now, those ranges are fetched again. */
export function readNotFoundSeries(connection: Connection, stream: HistoryStream): Set<number> {
  const isOfStream = and(eq(settledRanges.stream, stream), isNotFound);
  const found = connection.orm.select({ series: settledRanges.series }).from(settledRanges).where(isOfStream);
  return new Set(found.all().map(({ series }) => series));
}

/** Whether the service once answered 404 for this series. */
export function wasNotFound(connection: Connection, key: LedgerKey): boolean {
  return connection.prepared(notFoundRanges).all(key).length > 0;
}

const isNotFoundOfKey = and(isOfKey(settledRanges), isNotFound);
const notFoundRanges = (orm: Orm) => orm.select().from(settledRanges).where(isNotFoundOfKey).prepare();

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
  for (const range of transaction.prepared(notFoundRanges).all(key)) retract(transaction, key, range);
}
