import type { LedgerChange } from "../../rule/apply.ts";
import { withdrawRows } from "../rows/withdraw-rows.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type LedgerKey, retract, type SeriesKey, settle, settleAsLost } from "./ledger.ts";

/** Writes what the rule decided, in the transaction of the rows. Nothing else changes the ledger. Returns how many rows it withdrew. */
export function applyChanges(
  transaction: Transaction,
  key: LedgerKey,
  changes: readonly LedgerChange[],
): number {
  let withdrawn = 0;
  for (const change of changes) {
    if (change.kind === "retract") retract(transaction, key, change.range);
    // Only the rule of histories withdraws rows.
    else if (change.kind === "withdraw")
      withdrawn += withdrawRows(transaction, key as SeriesKey, change.timestamps);
    else if (change.isDeleted) settleAsLost(transaction, key, change.range, change.reason ?? "");
    else settle(transaction, key, change.range, change.proof, change.reason);
  }
  return withdrawn;
}
