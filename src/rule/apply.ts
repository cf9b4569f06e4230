import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { Proof, StoredSeries } from "./answer.ts";
import { type Claim, NO_LONGER_SERVED, NOTHING_OLDER, type PendingClaim } from "./claim.ts";

/** One change of the ledger or of the rows, in the transaction of the answer that led to it. */
export type LedgerChange =
  | {
      readonly kind: "settle";
      readonly range: TimeRange;
      readonly proof: Proof;
      /** Why nothing is stored; null: rows are. */
      readonly reason: string | null;
      /** Its rows are deleted on purpose: lost, even where it was covered. */
      readonly isDeleted?: boolean;
    }
  | { readonly kind: "retract"; readonly range: TimeRange }
  /** Delete these rows, and keep them in `revisions`. */
  | { readonly kind: "withdraw"; readonly timestamps: readonly Micros[] };

/** A claim that must be repeated does not settle anything, and rows that may be gone are not covered meanwhile. */
export function applyPending({ kind, range }: PendingClaim): LedgerChange[] {
  return kind === "withdrawn" ? [{ kind: "retract", range }] : [];
}

/** The part of what is stored that accepted claims are applied to. */
export type AppliedTo = Pick<StoredSeries, "settledRanges" | "rowsBeside">;

/** What an accepted claim changes. `stored`: as the changes before have left it. */
export function applyClaim(claim: Claim, stored: AppliedTo): LedgerChange[] {
  const { kind, range, says, subject, because } = claim;
  const settled = settleAs(says, range, says === "rows" ? null : because);
  switch (kind) {
    case "records":
      return [settled];
    case "gone":
      return [{ kind: "withdraw", timestamps: subject }];
    case "withdrawn":
      return [{ kind: "withdraw", timestamps: subject }, settled];
    case "end":
    case "end moved":
      return applyEnd(claim, stored);
    case "not found":
    case "still absent":
      return settleOpen(claim, stored);
  }
}

/** The oldest record stands alone at the end: no other page shows what is beside it. */
function applyEnd(claim: Claim, stored: AppliedTo): LedgerChange[] {
  const { range, subject } = claim;
  const to = Math.min(subject[0] ?? range.to, range.to);
  const below = settleOpen({ ...claim, range: { from: range.from, to } }, stored);
  return to < range.to ? [settleAs("rows", { from: to, to: range.to }, null), ...below] : below;
}

/** Settles what is open: as lost where REST served records before, else as empty. Only previews are withdrawn. */
function settleOpen({ range, because, lostTo = range.from }: Claim, stored: AppliedTo): LedgerChange[] {
  const cut = Math.max(range.from, Math.min(lostTo, range.to));
  const findOpen = (part: TimeRange) => subtract([part], normalise(stored.settledRanges(part)));
  const lostBecause = because === NOTHING_OLDER ? NO_LONGER_SERVED : because;
  const lost = findOpen({ from: range.from, to: cut }).map((part) => settleAs("lost", part, lostBecause));
  const empty = findOpen({ from: cut, to: range.to }).flatMap((part): LedgerChange[] => {
    const rows = stored.rowsBeside(part, []);
    // Stays open: a row that REST has served would contradict it.
    if (!rows.every(({ isPreview }) => isPreview)) return [];
    const settled = settleAs("empty", part, because);
    return rows.length > 0
      ? [{ kind: "withdraw", timestamps: rows.map(({ ts }) => ts) }, settled]
      : [settled];
  });
  return [...lost, ...empty];
}

function settleAs(proof: Proof, range: TimeRange, reason: string | null): LedgerChange {
  return { kind: "settle", range, proof, reason };
}
