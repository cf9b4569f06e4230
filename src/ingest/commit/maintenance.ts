import { loseAgedOut } from "../../rule/apply.ts";
import { applyChanges, type LedgerKey, readTouched } from "../../warehouse/coverage/ledger.ts";
import { dropPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import type { SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { recordBlockedReason } from "../../warehouse/coverage/targets.ts";
import { truncateWal } from "../../warehouse/sqlite/wal.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";

/** Marks gaps that left the service's window as lost. */
export function commitLostRanges(transaction: Transaction, gaps: readonly SeriesGaps[]): void {
  const plans = gaps.map(({ key, agedOut }) => {
    const changes = loseAgedOut(agedOut);
    return { key, agedOut, changes, touched: readTouched(transaction, key, changes) };
  });
  for (const { key, agedOut, changes, touched } of plans) {
    applyChanges(transaction, key, changes, touched);
    for (const { to } of agedOut) dropPendingClaims(transaction, key, to);
  }
}

export function commitBlockedReason(
  transaction: Transaction,
  { keys, reason }: { keys: readonly LedgerKey[]; reason: string | null },
): void {
  for (const key of keys) recordBlockedReason(transaction, key, reason);
}

/** Rows that ANALYZE samples per index: exact statistics of a large table would take minutes. */
const ANALYSIS_LIMIT_ROWS = 400;

/** Refreshes stale planner statistics and truncates the WAL. */
export function optimizeDatabase({ connection }: WarehouseWriter): ReturnType<typeof truncateWal> {
  connection.database.pragma(`analysis_limit = ${ANALYSIS_LIMIT_ROWS}`);
  connection.database.pragma("optimize");
  return truncateWal(connection);
}
