import type { LedgerChange } from "../../rule/apply.ts";
import { withdrawRows } from "../rows/withdraw-rows.ts";
import type { Transaction } from "../tables/transaction.ts";
import { changeLedger, type LedgerKey, type SeriesKey } from "./ledger.ts";

/** Writes what the rule decided, in the transaction of the rows. Nothing else changes the ledger. Returns how many rows it withdrew. */
export function applyChanges(
  transaction: Transaction,
  key: LedgerKey,
  changes: readonly LedgerChange[],
): number {
  let withdrawn = 0;
  for (const change of changes) {
    if (change.kind !== "withdraw") changeLedger(transaction, key, change);
    // Only the rule of histories withdraws rows.
    else withdrawn += withdrawRows(transaction, key as SeriesKey, change.timestamps);
  }
  return withdrawn;
}
