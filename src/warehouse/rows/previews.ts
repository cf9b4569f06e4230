import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredRow } from "../../rule/answer.ts";
import { findProofAt, type LedgerKey, type SeriesKey } from "../coverage/ledger.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepPastRow } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

/*
 * A live tick is a preview until REST has proven its range (docs/decisions/live-ticks.md). A row with the source `live` in a
 * covered range is from a cached page, which REST has served.
 */

/** Whether a row with source `live` is a preview: no REST page has covered it. */
function isPreview(transaction: Transaction, key: LedgerKey, ts: Micros): boolean {
  const proof = findProofAt(transaction, key, ts);
  return proof === undefined || proof === "lost";
}

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

export type MatchedPreviews = Readonly<ReturnType<typeof matchPreviews>>;

/** The live rows of index ticks that a page has, before it is written. */
export function matchPreviews(
  transaction: Transaction,
  series: number,
  timestamps: readonly Micros[],
  tolerance: Micros,
) {
  const [newest = 0, oldest = 0] = [timestamps[0], timestamps.at(-1)];
  const liveRows = transaction.values<Micros>(
    "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND source = 1",
    [series, oldest - tolerance, newest + tolerance],
  );
  const ascending = liveRows.length === 0 ? [] : [...timestamps].sort((a, b) => a - b);
  const served = new Set(ascending);
  const matched = new Set(liveRows.filter((ts) => served.has(ts)));
  /** How many it has at the same moment. */
  const confirmed = matched.size;
  /** The previews that it has at a slightly other moment, less than the tolerance away: at most one for each record. */
  const replaced: Micros[] = [];
  const offsets: Micros[] = [];
  for (const ts of liveRows) {
    const nearest = findNearest(ascending, ts);
    if (served.has(ts) || matched.has(nearest) || Math.abs(ts - nearest) >= tolerance) continue;
    if (!isPreview(transaction, { stream: "index_ticks", series }, ts)) continue;
    matched.add(nearest);
    replaced.push(ts);
    offsets.push(ts - nearest);
  }
  offsets.sort((a, b) => a - b);
  /** `offset`: how much later the websocket stamped these, the median; undefined without any. */
  return { confirmed, replaced, offset: offsets[offsets.length >> 1] };
}

/** Deletes previews that a page has replaced. They leave no revision. */
export function removePreviews(transaction: Transaction, series: number, replaced: readonly Micros[]): void {
  const remove = transaction.statement("DELETE FROM index_tick_rows WHERE series = ? AND ts = ?");
  for (const ts of replaced) {
    keepPastRow(transaction, "index_ticks", { key: series, ts });
    remove.run([series, ts]);
    transaction.journal.add("index_ticks", "rows", series, { from: ts, to: ts + 1 });
  }
  addRowCount(transaction, "index_ticks", -replaced.length);
}

function findNearest(ascending: readonly Micros[], ts: Micros): Micros {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] as Micros) < ts) low = middle + 1;
    else high = middle;
  }
  const [above, below] = [ascending[low] as Micros, ascending[low - 1] ?? Number.NEGATIVE_INFINITY];
  return ts - below < above - ts ? below : above;
}
