import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type LedgerLine, retract } from "./ledger.ts";
import { type RowTable, rowTables } from "./row-tables.ts";
import type { Transaction } from "./transaction.ts";

/** Why a range is empty in which the service says that it has nothing, nor anything older: one older row refutes it. */
export const NOTHING_OLDER = "nothing older";

/** Whether a row stands in the range: what the service once served there, it cannot deny by "nothing older". */
export function hasRows(
  transaction: Transaction,
  { stream, series }: { stream: WalkedStream; series: number },
  { from, to }: TimeRange,
): boolean {
  if (from >= to) return false;
  const { table, keyColumn, momentColumn, moment }: RowTable<never> = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} >= ? AND ${momentColumn} < ? LIMIT 1`;
  return transaction.statement(sql).get([series, moment(from), moment(to)]) !== undefined;
}

/** The service has shown a row of this moment: wherever it said "nothing older" of a later one is open again. */
export function refuteEnds(transaction: Transaction, line: LedgerLine, row: Micros): boolean {
  const refuted = transaction
    .statement(
      `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges
        WHERE stream = ? AND series = ? AND to_ts > ? AND reason = ?`,
    )
    .all([line.stream, line.series, row, NOTHING_OLDER]) as TimeRange[];
  for (const range of refuted) retract(transaction, line, range);
  return refuted.length > 0;
}
