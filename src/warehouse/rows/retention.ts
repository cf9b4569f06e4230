import { streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { settleAsLost } from "../coverage/ledger.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { addRowCount } from "./stream-stats.ts";

/** Streams that grow without bound and have a retention setting. */
export type PrunableStream = "exchange_ticks" | "derivative_ticks";

/** Reason of ranges whose rows were deleted because they are older than the retention. */
export const RETENTION_REASON = "retention";

/** About ten milliseconds of work, so that other commits hardly wait. */
const MAX_ROWS_PER_CALL = 5_000;

/**
 * Deletes at most `maxRows` rows older than `before`. First marks the whole range `lost` with reason `retention`, so
 * that the ledger never covers rows that are already deleted.
 */
export function prune(
  transaction: Transaction,
  stream: PrunableStream,
  before: Micros,
  maxRows = MAX_ROWS_PER_CALL,
): { deleted: number; isDone: boolean } {
  const ledgerKeys = transaction
    .statement<Pick<SettledRangeRow, "series" | "from">>(
      'SELECT series, min(from_ts) AS "from" FROM settled_ranges WHERE stream = ? GROUP BY series',
    )
    .all([stream]);
  for (const { series, from } of ledgerKeys) {
    settleAsLost(transaction, { stream, series }, { from, to: before }, RETENTION_REASON);
  }
  const { table, keyColumn } = rowTables[stream];
  const { dictionary } = streamTable[stream];
  const keys = transaction
    .statement<number>(
      `SELECT ${keyColumn} FROM ${dictionary} d WHERE EXISTS (SELECT 1 FROM ${table} r WHERE r.${keyColumn} = d.${keyColumn} AND r.ts < ?)`,
    )
    .pluck()
    .all([before]);
  // Delete the oldest rows of a series first, up to the limit: one series may have millions of expired rows.
  const selectCutoff = transaction
    .statement<Micros>(
      `SELECT ts FROM ${table} WHERE ${keyColumn} = ? AND ts < ? ORDER BY ts LIMIT 1 OFFSET ?`,
    )
    .pluck();
  const deleteRows = transaction.statement(`DELETE FROM ${table} WHERE ${keyColumn} = ? AND ts < ?`);
  let deleted = 0;
  for (const key of keys) {
    if (deleted >= maxRows) break;
    const until = selectCutoff.get([key, before, maxRows - deleted]) ?? before;
    deleted += deleteRows.run([key, until]).changes;
    transaction.journal.add(stream, "rows", key, { from: 0, to: until });
  }
  addRowCount(transaction, stream, -deleted);
  return { deleted, isDone: deleted < maxRows };
}
