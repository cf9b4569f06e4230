import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredTime } from "../schema/rows.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { storeRevision } from "./revisions.ts";
import { addRowCount } from "./stream-stats.ts";

interface WithdrawResult {
  /** How many rows were deleted and stored in `revisions`. */
  readonly withdrawn: number;
  /**
   * How many rows the page lacked, if that was too many to be plausible: nothing was deleted, and nothing may be
   * settled.
   */
  readonly refused: number;
}

/** If a page lacks more stored rows than this share of its own size, the page is considered wrong. */
const MAX_MISSING_SHARE = 0.1;
/**
 * This many are always allowed: a tenth of a short page is less than one row, which would leave its gap open forever.
 */
const MIN_MISSING_LIMIT = 2;

/**
 * Withdraws the stored rows that a page lacks in its proven range, for which the page is authoritative. Call it after
 * the page's rows are written and before the range is settled.
 */
export function withdrawMissing(
  transaction: Transaction,
  page: {
    stream: RowStream;
    series: number;
    /** The proven range of the page. */
    range: TimeRange;
    /** The timestamps of the page's rows of this series. */
    timestamps: readonly Micros[];
  },
): WithdrawResult {
  const table: RowTable<never> = rowTables[page.stream];
  const { keyColumn, timeColumn } = table;
  const where = `FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const bounds = ({ from, to }: TimeRange) => [page.series, table.storedTime(from), table.storedTime(to)];
  const count = (range: TimeRange) =>
    range.from < range.to ? transaction.value<number>(`SELECT count(*) ${where}`, bounds(range)) : 0;
  const { from, to } = page.range;
  // The page's rows are already stored, so equal counts mean that no other row is. Usually this saves reading the rows.
  const filled = transaction.findFilledRange(page.stream, page.series);
  const stored =
    filled && from <= filled.from && filled.to <= to
      ? count({ from, to: filled.from }) + filled.rows + count({ from: filled.to, to })
      : count(page.range);
  if (stored === countDistinct(page.timestamps, page.range)) return { withdrawn: 0, refused: 0 };

  const expected = new Set(filterByRange(page.timestamps, page.range).map((ts) => table.storedTime(ts)));
  const rows = transaction
    .statement<readonly [StoredTime, ...SqlValue[]]>(
      `SELECT ${timeColumn}, ${table.columns.join(", ")} ${where}`,
    )
    .raw()
    .all(bounds(page.range));
  const missing = rows.filter(([time]) => !expected.has(time));
  const maxMissing = Math.max(MIN_MISSING_LIMIT, page.timestamps.length * MAX_MISSING_SHARE);
  if (missing.length > maxMissing) {
    return { withdrawn: 0, refused: missing.length };
  }
  const deleteRow = transaction.statement(
    `DELETE FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} = ?`,
  );
  for (const [time, ...before] of missing) {
    storeRevision(transaction, table, {
      key: page.series,
      ts: table.tsOfStored(time),
      before,
      after: null,
    });
    deleteRow.run([page.series, time]);
  }
  addRowCount(transaction, page.stream, -missing.length);
  return { withdrawn: missing.length, refused: 0 };
}

/** Pages are in descending order, so distinct timestamps can be counted without a set unless one repeats. */
function countDistinct(timestamps: readonly Micros[], { from, to }: TimeRange): number {
  let inside = 0;
  let previous = Number.POSITIVE_INFINITY;
  for (const ts of timestamps) {
    if (ts >= previous) return new Set(filterByRange(timestamps, { from, to })).size;
    if (from <= ts && ts < to) inside++;
    previous = ts;
  }
  return inside;
}

function filterByRange(timestamps: readonly Micros[], { from, to }: TimeRange): readonly Micros[] {
  return timestamps.filter((ts) => from <= ts && ts < to);
}
