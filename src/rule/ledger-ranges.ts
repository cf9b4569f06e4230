import { assertNormalised, formatRange, normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { SettledRange } from "./answer.ts";
import type { LedgerChange } from "./apply.ts";

/*
 * The ledger of one series as a list of settled ranges: ascending, disjoint, merged where proof and reason are equal.
 */

/**
 * `touched`: the ranges that overlap or touch the changed one. Returns what stands in their place, `touched` itself if nothing has
 * changed. `withdraw` is about rows.
 */
export function changeRanges(
  touched: readonly SettledRange[],
  change: LedgerChange,
): readonly SettledRange[] {
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
  if (lists.length === 1) return lists[0] ?? [];
  const byStart = new Map(lists.flat().map((settled) => [settled.from, settled]));
  return [...byStart.values()].sort((a, b) => a.from - b.from);
}

/** Puts a range in the place of whatever was settled there. */
function replaceRange(
  touched: readonly SettledRange[],
  { from, to, proof, reason }: SettledRange,
): readonly SettledRange[] {
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
