import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { reopen } from "../../rule/findings.ts";
import { applyChanges, removeRanges } from "../coverage/ledger.ts";
import { readPresentTs } from "../coverage/targets.ts";
import { hoursOf, markStale } from "../rows/kept-bars.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import {
  type AuditContext,
  type AuditedKey,
  type AuditFinding,
  type AuditRule,
  readAuditedKeys,
} from "./audited-key.ts";
import { checkKeptBars } from "./check-kept-bars.ts";
import { checkClaims, checkOrder } from "./check-ranges.ts";
import { checkRows } from "./check-rows.ts";
import { checkTiling, type GapsByKey, readViewGaps } from "./check-tiling.ts";

export interface AuditResult {
  readonly keyCount: number;
  readonly rangeCount: number;
  /** Rules that are broken, in the order of the ledger. */
  readonly findings: readonly AuditFinding[];
  /** What is unusual but may be right. */
  readonly remarks: readonly AuditFinding[];
}

/**
 * Checks the whole ledger against itself, the rows and the view `gaps`, without the service. Only reads, in
 * one transaction, and seeks rows instead of scanning them, except for the kept bars. `now`: the present by the service's clock.
 */
export function auditLedger(connection: Connection, now?: Micros): AuditResult {
  return connection.database.transaction(() => {
    const context: AuditContext = { connection, now: now ?? readPresentTs(connection) };
    const viewGaps = readViewGaps(context);
    let keyCount = 0;
    let rangeCount = 0;
    const found: AuditFinding[] = [];
    for (const audited of readAuditedKeys(connection)) {
      keyCount++;
      rangeCount += audited.settled.length;
      found.push(...checkKey(context, audited, viewGaps));
    }
    return {
      keyCount,
      rangeCount,
      findings: found.filter(({ isRemark }) => !isRemark),
      remarks: found.filter(({ isRemark }) => isRemark),
    };
  })();
}

/** The other checks assume ascending and disjoint ranges. */
function checkKey(context: AuditContext, audited: AuditedKey, viewGaps: GapsByKey): AuditFinding[] {
  const disorder = checkOrder(audited);
  if (disorder.length > 0) return disorder;
  return [
    ...checkTiling(context, audited, viewGaps),
    ...checkClaims(context, audited),
    ...checkRows(context, audited),
    ...checkKeptBars(context, audited),
  ];
}

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
  // First, because taking back refuses a ledger with overlaps.
  for (const { rule, key, from, to } of repairable)
    if (rule === "order") {
      removeRanges(transaction, key, "from_ts < ? AND to_ts >= ?", [to, from]);
      transaction.journal.add(key.stream as RowStream, "retracted", key.series, { from, to });
    }
  for (const { rule, key, from, to } of repairable)
    if (rule === "kept_bars") markStale(transaction, key.series, hoursOf({ from, to }));
    else if (rule !== "order") applyChanges(transaction, key, reopen([{ from, to }]));
  return repairable.length;
}
