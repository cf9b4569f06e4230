import { streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { loseExpired } from "../../rule/apply.ts";
import { applyChanges } from "../coverage/ledger.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import { hasSlotOfKey, timeOrder } from "../tables/row-parts.ts";
import { rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { addRowCount } from "./stream-stats.ts";

/** Streams that grow without bound and have a retention setting. */
export type PrunableStream = "exchange_ticks" | "derivative_ticks";

/** About ten milliseconds of work, so that other commits hardly wait. */
const MAX_ROWS_PER_CALL = 5_000;

/**
 * Deletes at most `maxRows` rows older than `before`. `fromKey`: where the previous call has stopped. The first call marks the whole range `lost` with reason `retention`, so
 * that the ledger never covers rows that are already deleted.
 */
export function prune(
  transaction: Transaction,
  stream: PrunableStream,
  before: Micros,
  {
    fromKey,
    maxRows = MAX_ROWS_PER_CALL,
  }: { readonly fromKey?: number | undefined; readonly maxRows?: number } = {},
) {
  if (fromKey === undefined) settleExpired(transaction, stream, before);
  const { table, storedTable, pastTable, keyColumn } = rowTables[stream];
  const { dictionary } = streamTable[stream];
  // One at a time: to list all keys for each batch would cost more than its rows.
  const keySql = `SELECT ${keyColumn} FROM ${dictionary} d WHERE ${keyColumn} >= ?
    AND EXISTS (SELECT 1 FROM ${table} r WHERE r.${keyColumn} = d.${keyColumn} AND r.ts < ?) ORDER BY ${keyColumn} LIMIT 1`;
  // Delete the oldest rows of a series first, up to the limit: one series may have millions of expired rows.
  const cutoffSql = `SELECT ts FROM ${table} WHERE ${keyColumn} = ? AND ts < ? ORDER BY ${timeOrder(stream)} LIMIT 1 OFFSET ?`;
  let deleted = 0;
  let key = transaction.findValue<number>(keySql, [fromKey ?? 0, before]);
  while (key !== undefined && deleted < maxRows) {
    const until = transaction.findValue<Micros>(cutoffSql, [key, before, maxRows - deleted]) ?? before;
    deleted += transaction.run(`DELETE FROM ${storedTable} WHERE ${hasSlotOfKey(stream)} AND ts < ?`, [
      key,
      until,
    ]);
    transaction.run(`DELETE FROM ${pastTable} WHERE ${keyColumn} = ? AND ts < ?`, [key, until]);
    transaction.journal.add(stream, "rows", key, { from: 0, to: until });
    key = transaction.findValue<number>(keySql, [key, before]);
  }
  addRowCount(transaction, stream, -deleted);
  /** `nextKey`: where to go on; undefined: no expired row is left. */
  return { deleted, nextKey: key };
}

function settleExpired(transaction: Transaction, stream: PrunableStream, before: Micros): void {
  const ledgerKeys = transaction.rows<Pick<SettledRangeRow, "series" | "from">>(
    'SELECT series, min(from_ts) AS "from" FROM settled_ranges WHERE stream = ? GROUP BY series',
    [stream],
  );
  for (const { series, from } of ledgerKeys)
    applyChanges(transaction, { stream, series }, loseExpired({ from, to: before }));
}
