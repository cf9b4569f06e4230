import type { RowStream } from "../../model/streams.ts";
import { removeRanges, retract } from "../coverage/ledger.ts";
import { hoursOf, markStale } from "../rows/kept-bars.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { AuditFinding, AuditRule } from "./audited-key.ts";

/** False claims of the ledger, and wrong bars. The others are about views and targets, which the next start declares again. */
const repairableRules: readonly AuditRule[] = [
  "order",
  "row_in_empty",
  "no_rows",
  "lost_in_reach",
  "future",
  "kept_bars",
];

export function isRepairable({ rule }: AuditFinding): boolean {
  return repairableRules.includes(rule);
}

/**
 * Takes back every claim that the audit found false: its range becomes a gap, which the next run fetches again. A snapshot
 * stream has no history, so there the range is lost. Rows stay. Wrong bars are computed again. Returns how many findings it has repaired.
 */
export function repairLedger(transaction: Transaction, findings: readonly AuditFinding[]): number {
  const repairable = findings.filter(isRepairable);
  // First, because `retract` refuses a ledger with overlaps.
  for (const { rule, key, from, to } of repairable)
    if (rule === "order") {
      removeRanges(transaction, key, "from_ts < ? AND to_ts >= ?", [to, from]);
      transaction.journal.add(key.stream as RowStream, "retracted", key.series, { from, to });
    }
  for (const { rule, key, from, to } of repairable)
    if (rule === "kept_bars") markStale(transaction, key.series, hoursOf({ from, to }));
    else if (rule !== "order") retract(transaction, key, { from, to });
  return repairable.length;
}
