import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredRow } from "../../rule/answer.ts";
import type { SeriesKey } from "../coverage/ledger.ts";
import type { StoredTime } from "../schema/rows.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isPreview } from "./previews.ts";
import { storeRevision } from "./revisions.ts";
import { keepPastRow } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

/** The stored rows of the range other than those at `timestamps`, ascending. */
export function findRowsBeside(
  transaction: Transaction,
  key: SeriesKey,
  { from, to }: TimeRange,
  timestamps: readonly Micros[],
): StoredRow[] {
  const { table, keyColumn, timeColumn, columns, sourceAt, storedTime, tsOfStored }: RowTable<never> =
    rowTables[key.stream];
  const ofSeries = `FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn}`;
  const sql = `SELECT ${timeColumn} ${ofSeries} >= ? AND ${timeColumn} < ? ORDER BY ${timeColumn}`;
  const bounds = [key.series, storedTime(from), storedTime(to)];
  const stored = transaction.values<StoredTime>(sql, bounds);
  // Usually the oldest row of the page before is the only one.
  const newest = timestamps.slice(0, 1).map(storedTime);
  if (stored.every((time) => newest.includes(time))) return [];
  const expected = new Set(timestamps.map(storedTime));
  const isLiveSql = `SELECT 1 ${ofSeries} = ? AND ${columns[sourceAt] ?? "0"} = 1`;
  return stored
    .filter((time) => !expected.has(time))
    .map((time) => {
      const ts = tsOfStored(time);
      const isLive = transaction.findRow(isLiveSql, [key.series, time]) !== undefined;
      return { ts, isPreview: isLive && isPreview(transaction, key, ts) };
    });
}

/** Deletes rows that the service no longer has, and stores them in `revisions`. Returns how many there were. */
export function withdrawRows(
  transaction: Transaction,
  { stream, series }: { readonly stream: RowStream; readonly series: number },
  timestamps: readonly Micros[],
): number {
  const table: RowTable<never> = rowTables[stream];
  const isRow = `${table.keyColumn} = ? AND ${table.timeColumn} = ?`;
  const sql = `SELECT ${table.columns.join(", ")} FROM ${table.table} WHERE ${isRow}`;
  let withdrawn = 0;
  for (const ts of timestamps) {
    const row = [series, table.storedTime(ts)];
    const before = transaction.findTuple<readonly SqlValue[]>(sql, row);
    if (!before) continue;
    storeRevision(transaction, table, { key: series, ts, before, after: null });
    keepPastRow(transaction, table, { key: series, ts });
    transaction.run(`DELETE FROM ${table.table} WHERE ${isRow}`, row);
    transaction.journal.add(stream, "rows", series, { from: ts, to: ts + 1 });
    withdrawn++;
  }
  addRowCount(transaction, stream, -withdrawn);
  return withdrawn;
}
