import type { Micros } from "../model/instant.ts";
import { settleAsLost } from "./ledger.ts";
import { rowTables } from "./row-tables.ts";
import { countRows } from "./stream-state.ts";
import type { Transaction } from "./transaction.ts";

/** Enough for one short transaction; the rest is for the next call. */
const ROWS_A_CALL = 50_000;

/**
 * Deletes rows older than `before`. The ledger says `lost`, reason `retention`, before the first row goes: at no moment
 * does it cover rows that are not there. Returns false while more is left to delete.
 */
export function prune(
  transaction: Transaction,
  stream: "exchange_ticks" | "derivative_ticks",
  before: Micros,
): { deleted: number; isDone: boolean } {
  const lines = transaction
    .statement('SELECT series, min(from_ts) AS "from" FROM settled_ranges WHERE stream = ? GROUP BY series')
    .all([stream]) as { series: number; from: Micros }[];
  for (const { series, from } of lines) {
    settleAsLost(transaction, { stream, series }, { from, to: before }, "retention");
  }
  const { table, keyColumn } = rowTables[stream];
  const dictionary = stream === "exchange_ticks" ? "listings" : "contracts";
  const keys = transaction
    .statement(
      `SELECT ${keyColumn} FROM ${dictionary} d WHERE EXISTS (SELECT 1 FROM ${table} r WHERE r.${keyColumn} = d.${keyColumn} AND r.ts < ?)`,
    )
    .pluck()
    .all([before]) as number[];
  const erase = transaction.statement(`DELETE FROM ${table} WHERE ${keyColumn} = ? AND ts < ?`);
  let deleted = 0;
  let done = 0;
  for (const key of keys) {
    if (deleted >= ROWS_A_CALL) break;
    deleted += erase.run([key, before]).changes;
    done++;
  }
  countRows(transaction, stream, -deleted);
  return { deleted, isDone: done === keys.length };
}
