import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { loseAgedOut, reopen } from "../../rule/apply.ts";
import { applyChanges, type LedgerKey, readTouched } from "../../warehouse/coverage/ledger.ts";
import { dropPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import type { SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { recordBlockedReason } from "../../warehouse/coverage/targets.ts";
import { type PrunableStream, type PruneResult, prune } from "../../warehouse/rows/retention.ts";
import { recordMissingScopes, recordStreamError } from "../../warehouse/rows/stream-stats.ts";
import { type TruncateWalResult, truncateWal } from "../../warehouse/sqlite/wal.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";

/** Marks gaps that left the service's window as lost. */
export function commitLostRanges(warehouse: WarehouseWriter, gaps: readonly SeriesGaps[]): void {
  warehouse.transaction((transaction) => {
    const plans = gaps.map(({ key, agedOut }) => {
      const changes = loseAgedOut(agedOut);
      return { key, agedOut, changes, touched: readTouched(transaction, key, changes) };
    });
    for (const { key, agedOut, changes, touched } of plans) {
      applyChanges(transaction, key, changes, touched);
      for (const { to } of agedOut) dropPendingClaims(transaction, key, to);
    }
  });
}

export function commitBlockedReason(
  warehouse: WarehouseWriter,
  { keys, reason }: { keys: readonly LedgerKey[]; reason: string | null },
): void {
  warehouse.transaction((transaction) => {
    for (const key of keys) recordBlockedReason(transaction, key, reason);
  });
}

export interface StreamHealth {
  readonly stream: Stream;
  /** In one line, without secrets; null: healthy. */
  readonly error: string | null;
  readonly missingScopes: readonly string[];
}

/** Stored for `status`. */
export function commitStreamHealth(warehouse: WarehouseWriter, streams: readonly StreamHealth[]): void {
  warehouse.transaction((transaction) => {
    for (const { stream, error, missingScopes } of streams) {
      recordStreamError(transaction, stream, error);
      recordMissingScopes(transaction, stream, missingScopes);
    }
  });
}

/** Deletes one batch of rows older than the retention. Call it again with `nextKey` until there is none. */
export function pruneBatch(
  warehouse: WarehouseWriter,
  { stream, before, fromKey }: { stream: PrunableStream; before: Micros; fromKey?: number },
): PruneResult {
  return warehouse.transaction((transaction) => prune(transaction, stream, before, { fromKey }));
}

/** Reopens a range that an audit found wrong and could not repair. */
export function commitRetraction(
  warehouse: WarehouseWriter,
  { key, range }: { key: LedgerKey; range: TimeRange },
): void {
  warehouse.transaction((transaction) => applyChanges(transaction, key, reopen([range])));
}

/** Rows that ANALYZE samples per index: exact statistics of a large table would take minutes. */
const ANALYSIS_LIMIT_ROWS = 400;

/** Refreshes stale planner statistics and truncates the WAL. */
export function optimizeDatabase({ connection }: WarehouseWriter): TruncateWalResult {
  connection.database.pragma(`analysis_limit = ${ANALYSIS_LIMIT_ROWS}`);
  connection.database.pragma("optimize");
  return truncateWal(connection);
}
