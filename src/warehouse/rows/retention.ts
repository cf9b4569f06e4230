import { streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { settleAsLost } from "../coverage/ledger.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { countRows } from "./stream-stats.ts";

/** The streams that grow without end and may be cut. */
export type PrunedStream = "exchange_ticks" | "derivative_ticks";

/** Some ten milliseconds of work: who else has something to commit is hardly kept waiting. */
const ROWS_A_CALL = 5_000;

/**
 * Deletes rows older than `before`, a bite of them a call. The ledger says `lost`, reason `retention`, before the first
 * row goes: at no moment does it cover rows that are not there.
 */
export function prune(
  transaction: Transaction,
  stream: PrunedStream,
  before: Micros,
  most = ROWS_A_CALL,
): { deleted: number; isDone: boolean } {
  const lines = transaction
    .statement('SELECT series, min(from_ts) AS "from" FROM settled_ranges WHERE stream = ? GROUP BY series')
    .all([stream]) as { series: number; from: Micros }[];
  for (const { series, from } of lines) {
    settleAsLost(transaction, { stream, series }, { from, to: before }, "retention");
  }
  const { table, keyColumn } = rowTables[stream];
  const { dictionary } = streamTable[stream];
  const keys = transaction
    .statement(
      `SELECT ${keyColumn} FROM ${dictionary} d WHERE EXISTS (SELECT 1 FROM ${table} r WHERE r.${keyColumn} = d.${keyColumn} AND r.ts < ?)`,
    )
    .pluck()
    .all([before]) as number[];
  // The oldest first, and no more of one series than is left of the bite: a series may have millions of rows to lose.
  const cut = transaction
    .statement(`SELECT ts FROM ${table} WHERE ${keyColumn} = ? AND ts < ? ORDER BY ts LIMIT 1 OFFSET ?`)
    .pluck();
  const erase = transaction.statement(`DELETE FROM ${table} WHERE ${keyColumn} = ? AND ts < ?`);
  let deleted = 0;
  for (const key of keys) {
    if (deleted >= most) break;
    const until = (cut.get([key, before, most - deleted]) as Micros | undefined) ?? before;
    deleted += erase.run([key, until]).changes;
  }
  countRows(transaction, stream, -deleted);
  return { deleted, isDone: deleted < most };
}
