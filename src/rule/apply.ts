import type { Micros } from "../model/time.ts";
import { assertNormalised, formatRange, normalise, subtract, type TimeRange } from "../model/time-range.ts";
import {
  AGED_OUT_REASON,
  type Claim,
  NO_LONGER_SERVED,
  NOTHING_OLDER,
  type PendingClaim,
  type Proof,
  RETENTION_REASON,
  type SettledRange,
  type StoredSeries,
} from "./answer.ts";

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

/*
 * What changes the ledger without a claim of an answer:
 *
 * | what was found                                             | what it changes                      |
 * |------------------------------------------------------------|--------------------------------------|
 * | a row in a range that is empty                             | the whole range is open              |
 * | a live tick in a range of rows                             | its moment is open                   |
 * | a record above an end, an index that exists after all,     | what was settled wrongly is open     |
 * | a late record, a walk out of order, a finding of an audit  |                                      |
 * | a range that left the service's window                     | lost, where it is not covered        |
 * | rows older than the retention                              | lost, even where it was covered      |
 */

export function reopen(ranges: readonly TimeRange[]): LedgerChange[] {
  return ranges.map(({ from, to }) => ({ kind: "retract", range: { from, to } }));
}

/** The empty ranges that have rows now. As a whole: an answer that hid one record may have hidden others. */
export function disprovedRanges(touched: readonly SettledRange[], rows: readonly Micros[]) {
  const hasRow = ({ from, to }: TimeRange) => rows.some((ts) => from <= ts && ts < to);
  return touched.filter((settled) => settled.proof === "empty" && hasRow(settled));
}

/** A live tick was stored, of which the page that covered its moment had no record: REST is asked again. */
export function reopenAt(ts: Micros, touched: readonly SettledRange[]): LedgerChange[] {
  const settled = touched.find(({ from, to }) => from <= ts && ts < to);
  if (settled === undefined || settled.proof === "lost") return [];
  return reopen([settled.proof === "empty" ? settled : { from: ts, to: ts + 1 }]);
}

export function loseAgedOut(ranges: readonly TimeRange[]): LedgerChange[] {
  return ranges.map((range) => ({ kind: "settle", range, proof: "lost", reason: AGED_OUT_REASON }));
}

export function loseExpired(range: TimeRange): LedgerChange[] {
  if (range.from >= range.to) return [];
  return [{ kind: "settle", range, proof: "lost", reason: RETENTION_REASON, isDeleted: true }];
}

/*
 * The ledger of one series as a list of settled ranges: ascending, disjoint, merged where proof and reason are equal.
 */

/**
 * `touched`: the ranges that overlap or touch the changed one. Returns what stands in their place, `touched` itself if nothing has
 * changed. `withdraw` is about rows.
 */
export function changeRanges(touched: readonly SettledRange[], change: LedgerChange) {
  if (change.kind === "withdraw") return touched;
  const { range } = change;
  if (change.kind === "retract")
    return range.from < range.to ? touched.flatMap((settled) => cutOut(settled, range)) : touched;
  const { proof, reason, isDeleted } = change;
  // `rows` and `empty` replace what was settled before; `lost` only fills what is not covered, unless its rows are deleted.
  const covered = touched.filter((settled) => settled.proof !== "lost");
  const parts = proof === "lost" && !isDeleted ? subtract([range], normalise(covered)) : [range];
  return parts.reduce((ranges, part) => replaceRange(ranges, { ...part, proof, reason }), touched);
}

/** What stands in the ledger where the changes are made, ascending. `settledRanges`: before all of them. */
export function joinTouched(
  changes: readonly LedgerChange[],
  settledRanges: (range: TimeRange) => readonly SettledRange[],
): readonly SettledRange[] {
  const lists = changes.map((change) => (change.kind === "withdraw" ? [] : settledRanges(change.range)));
  const byStart = new Map(lists.flat().map((settled) => [settled.from, settled]));
  return [...byStart.values()].sort((a, b) => a.from - b.from);
}

function replaceRange(touched: readonly SettledRange[], { from, to, proof, reason }: SettledRange) {
  const isSame = (settled: SettledRange) =>
    settled.proof === proof && settled.reason === reason && settled.to >= from && settled.from <= to;
  const same = touched.filter(isSame);
  const [first] = same;
  if (first && same.length === 1 && first.from <= from && first.to >= to) return touched;
  const others = touched
    .filter((settled) => !isSame(settled))
    .flatMap((settled) => cutOut(settled, { from, to }));
  const merged = normalise([{ from, to }, ...same]).map((range) => ({ ...range, proof, reason }));
  return [...others, ...merged].sort((a, b) => a.from - b.from);
}

/** The parts of a settled range that lie outside `range`. */
function cutOut(settled: SettledRange, range: TimeRange): SettledRange[] {
  return subtract([settled], [range]).map(({ from, to }) => ({ ...settled, from, to }));
}

/** Throws unless the ranges are disjoint, ascending, and merged where proof and reason are equal. */
export function assertValidLedger(ranges: readonly SettledRange[]): void {
  let previous: SettledRange | undefined;
  for (const range of ranges) {
    const isSame = previous?.proof === range.proof && previous.reason === range.reason;
    if (previous && isSame) assertNormalised([previous, range]);
    else if (!(range.from < range.to) || (previous && previous.to > range.from))
      throw new Error(`the coverage ledger is inconsistent at ${formatRange(range)}`);
    previous = range;
  }
}
