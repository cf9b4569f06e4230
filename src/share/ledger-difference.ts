import type { TimeRange } from "../model/time-range.ts";
import { normalise, subtract } from "../model/time-range.ts";
import type { SettledRange } from "../warehouse/coverage/ledger.ts";

/** `rows`: rows and coverage are to be replaced together. `lost`: only coverage; rows of such a range are merged. */
export interface LedgerPiece extends TimeRange {
  readonly kind: "rows" | "lost";
}

/**
 * What the shared ledger lacks: settled here − settled there. Where both know the range, the local proof wins, except
 * that `lost` here never takes away what is covered there: it may be the only copy. Taking back is recorded explicitly
 * (`changed_ranges`).
 */
export function findLacking(local: readonly SettledRange[], shared: readonly SettledRange[]): LedgerPiece[] {
  const pieces: LedgerPiece[] = [];
  const add = (kind: LedgerPiece["kind"], part: TimeRange) => {
    const last = pieces.at(-1);
    if (last && last.kind === kind && last.to === part.from)
      pieces[pieces.length - 1] = { ...last, to: part.to };
    else pieces.push({ kind, from: part.from, to: part.to });
  };
  let next = 0;
  for (const range of local) {
    while (next < shared.length && (shared[next] as SettledRange).to <= range.from) next++;
    const same: TimeRange[] = [];
    for (let i = next; i < shared.length && (shared[i] as SettledRange).from < range.to; i++) {
      const other = shared[i] as SettledRange;
      const isSame = other.proof === range.proof && other.reason === range.reason;
      if (isSame || (range.proof === "lost" && other.proof !== "lost")) same.push(other);
    }
    const kind = range.proof === "lost" ? "lost" : "rows";
    for (const part of subtract([range], normalise(same))) add(kind, part);
  }
  return pieces;
}

export interface LedgerSplice {
  /** Where the ranges to delete begin. */
  readonly removed: readonly number[];
  readonly added: readonly SettledRange[];
  /** The ledger afterwards. */
  readonly result: SettledRange[];
}

/** Replaces the part of a ledger inside `range` by `content`, and merges touching ranges of equal proof and reason. */
export function spliceLedger(
  ledger: readonly SettledRange[],
  range: TimeRange,
  content: readonly SettledRange[],
): LedgerSplice {
  const first = lowerBound(ledger, range.from);
  let end = first;
  while (end < ledger.length && (ledger[end] as SettledRange).from <= range.to) end++;
  const touched = ledger.slice(first, end);
  const outside = touched.flatMap((each) =>
    subtract([each], [range]).map(({ from, to }) => ({ ...each, from, to })),
  );
  const inside = content.flatMap((each) => {
    const [from, to] = [Math.max(each.from, range.from), Math.min(each.to, range.to)];
    return from < to ? [{ ...each, from, to }] : [];
  });
  const merged: SettledRange[] = [];
  for (const each of [...outside, ...inside].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last && last.to === each.from && last.proof === each.proof && last.reason === each.reason)
      merged[merged.length - 1] = { ...last, to: each.to };
    else merged.push(each);
  }
  const kept = new Set(touched.map(toText));
  const stays = new Set(merged.map(toText));
  return {
    removed: touched.filter((each) => !stays.has(toText(each))).map(({ from }) => from),
    added: merged.filter((each) => !kept.has(toText(each))),
    result: [...ledger.slice(0, first), ...merged, ...ledger.slice(end)],
  };
}

/** The first range that ends at `from` or later. */
function lowerBound(ledger: readonly SettledRange[], from: number): number {
  let [low, high] = [0, ledger.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ledger[middle] as SettledRange).to < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function toText({ from, to, proof, reason }: SettledRange): string {
  return JSON.stringify([from, to, proof, reason]);
}
