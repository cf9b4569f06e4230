import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { findProofAt, type LedgerKey } from "../coverage/ledger.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepPastRow } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

/*
 * A live tick is a preview until REST has proven its range (docs/decisions/live-ticks.md). A row with the source `live` in a
 * covered range is from a cached page, which REST has served.
 */

/** Whether a row with source `live` is a preview: no REST page has covered it. */
export function isPreview(transaction: Transaction, key: LedgerKey, ts: Micros): boolean {
  const proof = findProofAt(transaction, key, ts);
  return proof === undefined || proof === "lost";
}

/** The timestamps of the live rows of index ticks in the range. Call it before a page is written. */
export function findLiveRows(transaction: Transaction, series: number, { from, to }: TimeRange): Micros[] {
  return transaction.values<Micros>(
    "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND source = 1",
    [series, from, to],
  );
}

interface ReplaceResult {
  /** Live rows that the page has at the same moment. */
  readonly confirmed: number;
  /** How much later the websocket stamped the others: the median; undefined without any. */
  readonly offset: Micros | undefined;
}

/**
 * Deletes the previews that the page has at a slightly other moment, less than `tolerance` away: at most one for each
 * record. They leave no revision.
 */
export function replacePreviews(
  transaction: Transaction,
  series: number,
  {
    liveRows,
    timestamps,
    tolerance,
  }: {
    readonly liveRows: readonly Micros[];
    readonly timestamps: readonly Micros[];
    readonly tolerance: Micros;
  },
): ReplaceResult {
  if (liveRows.length === 0) return { confirmed: 0, offset: undefined };
  const ascending = [...timestamps].sort((a, b) => a - b);
  const served = new Set(timestamps);
  const matched = new Set(liveRows.filter((ts) => served.has(ts)));
  const confirmed = matched.size;
  const remove = transaction.statement("DELETE FROM index_tick_rows WHERE series = ? AND ts = ?");
  const offsets: Micros[] = [];
  for (const ts of liveRows) {
    const nearest = findNearest(ascending, ts);
    if (served.has(ts) || matched.has(nearest) || Math.abs(ts - nearest) >= tolerance) continue;
    if (!isPreview(transaction, { stream: "index_ticks", series }, ts)) continue;
    keepPastRow(transaction, rowTables.index_ticks, { key: series, ts });
    remove.run([series, ts]);
    transaction.journal.add("index_ticks", "rows", series, { from: ts, to: ts + 1 });
    matched.add(nearest);
    offsets.push(ts - nearest);
  }
  addRowCount(transaction, "index_ticks", -offsets.length);
  offsets.sort((a, b) => a - b);
  return { confirmed, offset: offsets[offsets.length >> 1] };
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
