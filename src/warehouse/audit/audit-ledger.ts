import type { Micros } from "../../model/time.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { Connection } from "../sqlite/connection.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, readAuditedKeys } from "./audited-key.ts";
import { checkKeptBars } from "./check-kept-bars.ts";
import { checkClaims, checkOrder } from "./check-ranges.ts";
import { checkRows } from "./check-rows.ts";
import { checkSettledFlag } from "./check-settled-flag.ts";
import {
  checkCoverageView,
  checkTiling,
  type GapsByKey,
  readViewGaps,
  sumViewCoverage,
} from "./check-tiling.ts";

export interface AuditResult {
  readonly keyCount: number;
  readonly rangeCount: number;
  /** Rules that are broken, in the order of the ledger. */
  readonly findings: readonly AuditFinding[];
  /** What is unusual but may be right. */
  readonly remarks: readonly AuditFinding[];
}

/**
 * Checks the whole ledger against itself, against the rows and against the views, without the service. Only reads, in
 * one transaction, and seeks rows instead of scanning them, except for the kept bars. `now`: the present by the service's clock.
 */
export function auditLedger(connection: Connection, now?: Micros): AuditResult {
  return connection.database.transaction(() => {
    const context: AuditContext = { connection, now: now ?? readPresentTs(connection) };
    const views = { gaps: readViewGaps(context), coverage: sumViewCoverage(connection) };
    let keyCount = 0;
    let rangeCount = 0;
    const found: AuditFinding[] = [];
    for (const audited of readAuditedKeys(connection)) {
      keyCount++;
      rangeCount += audited.settled.length;
      found.push(...checkKey(context, audited, views));
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
function checkKey(
  context: AuditContext,
  audited: AuditedKey,
  views: { readonly gaps: GapsByKey; readonly coverage: ReturnType<typeof sumViewCoverage> },
): AuditFinding[] {
  const disorder = checkOrder(audited);
  if (disorder.length > 0) return disorder;
  return [
    ...checkTiling(context.now, audited, views.gaps),
    ...checkCoverageView(audited, views.coverage),
    ...checkClaims(context, audited),
    ...checkRows(context, audited),
    ...checkSettledFlag(context, audited),
    ...checkKeptBars(context, audited),
  ];
}
