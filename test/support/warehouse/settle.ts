import type { TimeRange } from "../../../src/model/time-range.ts";
import type { Proof } from "../../../src/rule/answer.ts";
import { applyChanges, type LedgerKey } from "../../../src/warehouse/coverage/ledger.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";

export function settle(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  proof: Proof,
  reason: string | null = null,
): void {
  applyChanges(transaction, key, [{ kind: "settle", range, proof, reason }]);
}

/** As retention does. */
export function settleAsLost(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  reason: string,
): void {
  applyChanges(transaction, key, [{ kind: "settle", range, proof: "lost", reason, isDeleted: true }]);
}

export function retract(transaction: Transaction, key: LedgerKey, range: TimeRange): void {
  applyChanges(transaction, key, [{ kind: "retract", range }]);
}
