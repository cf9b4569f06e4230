import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepRevision } from "./revisions.ts";
import { countRows } from "./stream-stats.ts";

export interface Withdrawal {
  /** Rows that moved to `revisions`. */
  readonly withdrawn: number;
  /** How many rows the page lacked, when that was too many to believe: nothing moved, and nothing may be settled. */
  readonly refused: number;
}

/** A page that contradicts more than this share of its own size is taken for the service's mistake. */
const BELIEVABLE_SHARE = 0.1;
/** So few are believed of any page: a tenth of a short page is less than one row, and would leave it open for ever. */
const BELIEVABLE_FEW = 2;

/**
 * A page is authoritative for the range that it proves: stored rows there that it lacks were never confirmed, moved or
 * deleted. To be called after the page's rows are written and before the range is settled.
 */
export function withdrawMissing(
  transaction: Transaction,
  page: {
    stream: RowStream;
    series: number;
    /** What the page proves. */
    range: TimeRange;
    /** The timestamps of the page's rows of this series. */
    present: readonly Micros[];
  },
): Withdrawal {
  const table: RowTable<never> = rowTables[page.stream];
  const { keyColumn, timeColumn } = table;
  const where = `FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const bounds = ({ from, to }: TimeRange) => [page.series, table.storedTime(from), table.storedTime(to)];
  const count = (range: TimeRange) =>
    range.from < range.to
      ? (transaction.statement(`SELECT count(*) ${where}`).pluck().get(bounds(range)) as number)
      : 0;
  const { from, to } = page.range;
  // The page's own rows are stored by now, so equal numbers mean equal rows: the ordinary case, without reading them.
  const filled = transaction.filled(page.stream, page.series);
  const stored =
    filled && from <= filled.from && filled.to <= to
      ? count({ from, to: filled.from }) + filled.rows + count({ from: filled.to, to })
      : count(page.range);
  if (stored === countDistinct(page.present, page.range)) return { withdrawn: 0, refused: 0 };

  const expected = new Set(within(page.present, page.range).map((ts) => table.storedTime(ts)));
  const rows = transaction
    .statement(`SELECT ${timeColumn}, ${table.columns.join(", ")} ${where}`)
    .raw()
    .all(bounds(page.range)) as [string | number, ...SqlValue[]][];
  const missing = rows.filter(([moment]) => !expected.has(moment));
  const believable = Math.max(BELIEVABLE_FEW, page.present.length * BELIEVABLE_SHARE);
  if (missing.length > believable) {
    return { withdrawn: 0, refused: missing.length };
  }
  const erase = transaction.statement(
    `DELETE FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} = ?`,
  );
  for (const [moment, ...before] of missing) {
    keepRevision(transaction, table, { key: page.series, ts: table.tsOfStored(moment), before, after: null });
    erase.run([page.series, moment]);
  }
  countRows(transaction, page.stream, -missing.length);
  return { withdrawn: missing.length, refused: 0 };
}

/** Pages are in order of time, so a page whose moments all differ shows it by itself. */
function countDistinct(moments: readonly Micros[], { from, to }: TimeRange): number {
  let inside = 0;
  let previous = Number.POSITIVE_INFINITY;
  for (const ts of moments) {
    if (ts >= previous) return new Set(within(moments, { from, to })).size;
    if (from <= ts && ts < to) inside++;
    previous = ts;
  }
  return inside;
}

function within(moments: readonly Micros[], { from, to }: TimeRange): readonly Micros[] {
  return moments.filter((ts) => from <= ts && ts < to);
}
