import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredRow } from "../../rule/answer.ts";
import type { SeriesKey } from "../coverage/ledger.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isPreview } from "./previews.ts";
import { keepPastRow } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

/** The stored rows of the range other than those at `timestamps`, ascending. */
export function findRowsBeside(
  transaction: Transaction,
  key: SeriesKey,
  { from, to }: TimeRange,
  timestamps: readonly Micros[],
): StoredRow[] {
  const { table, keyColumn, columns, sourceAt }: RowTable<never> = rowTables[key.stream];
  const ofSeries = `FROM ${table} WHERE ${keyColumn} = ? AND ts`;
  const sql = `SELECT ts ${ofSeries} >= ? AND ts < ? ORDER BY ts`;
  const stored = transaction.values<Micros>(sql, [key.series, from, to]);
  // Usually the oldest row of the page before is the only one.
  if (stored.every((ts) => ts === timestamps[0])) return [];
  const expected = new Set(timestamps);
  const isLiveSql = `SELECT 1 ${ofSeries} = ? AND ${columns[sourceAt] ?? "0"} = 1`;
  return stored
    .filter((ts) => !expected.has(ts))
    .map((ts) => {
      const isLive = transaction.findRow(isLiveSql, [key.series, ts]) !== undefined;
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
  const isRow = `${table.keyColumn} = ? AND ts = ?`;
  let withdrawn = 0;
  for (const ts of timestamps) {
    keepPastRow(transaction, table, { key: series, ts }, true);
    if (transaction.run(`DELETE FROM ${table.table} WHERE ${isRow}`, [series, ts]) === 0) continue;
    transaction.journal.add(stream, "rows", series, { from: ts, to: ts + 1 });
    withdrawn++;
  }
  addRowCount(transaction, stream, -withdrawn);
  return withdrawn;
}
