import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { subtract, type TimeRange } from "../../model/time-range.ts";
import type { StoredRow } from "../../rule/answer.ts";
import type { SeriesKey } from "../coverage/ledger.ts";
import type { StoredTime } from "../schema/rows.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isPreview } from "./previews.ts";
import { storeRevision } from "./revisions.ts";
import { countStoredRows } from "./row-queries.ts";
import { keepPastRow } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

/** The stored rows of the range other than those at `timestamps`, ascending. Call it after a page's rows are written. */
export function findRowsBeside(
  transaction: Transaction,
  key: SeriesKey,
  range: TimeRange,
  timestamps: readonly Micros[],
): StoredRow[] {
  const { stream, series } = key;
  const { table, keyColumn, timeColumn, columns, sourceAt, storedTime, tsOfStored }: RowTable<never> =
    rowTables[stream];
  const filled = transaction.findFilledRange(stream, series);
  // What the page filled was vacant: other rows are beside it.
  const isFilled = filled && filled.from === timestamps.at(-1) && filled.rows <= timestamps.length;
  // The page's rows are stored, so equal counts mean that no other row is. Usually this saves reading the rows.
  if (!isFilled && countStoredRows(transaction, key, range) === countDistinct(timestamps, range)) return [];

  const source = sourceAt < 0 ? "0" : columns[sourceAt];
  const sql = `SELECT ${timeColumn}, ${source} FROM ${table}
    WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ? ORDER BY ${timeColumn}`;
  const stored = subtract([range], isFilled ? [filled] : []).flatMap(({ from, to }) =>
    transaction.tuples<readonly [StoredTime, SqlValue]>(sql, [series, storedTime(from), storedTime(to)]),
  );
  // Usually the oldest row of the page before is the only one.
  const newest = timestamps.slice(0, 1).map(storedTime);
  if (stored.every(([time]) => newest.includes(time))) return [];
  const expected = new Set(timestamps.map(storedTime));
  return stored
    .filter(([time]) => !expected.has(time))
    .map(([time, from]) => {
      const ts = tsOfStored(time);
      return { ts, isPreview: from === 1 && isPreview(transaction, key, ts) };
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

/** Pages are in descending order, so distinct timestamps can be counted without a set unless one repeats. */
function countDistinct(timestamps: readonly Micros[], { from, to }: TimeRange): number {
  const isInside = (ts: Micros) => from <= ts && ts < to;
  let inside = 0;
  let previous = Number.POSITIVE_INFINITY;
  for (const ts of timestamps) {
    if (ts >= previous) return new Set(timestamps.filter(isInside)).size;
    if (isInside(ts)) inside++;
    previous = ts;
  }
  return inside;
}
