import { MICROS_PER_SECOND } from "../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../model/time-range.ts";
import { type Proof, RETENTION_REASON, type SettledRange } from "../rule/answer.ts";

/** Reason of the ranges whose rows are in a month that someone has detached. */
export const DETACHED_REASON = "detached";

/** `replace`: its rows are to be those of this file. `merge`: rows are added, and none is deleted. */
export interface LedgerPiece extends TimeRange {
  readonly kind: "replace" | "merge";
}

/**
 * What the shared ledger lacks: settled here − settled there. Where both know the range, the local proof wins, except
 * that `lost` here never removes what is covered there: it may be the only copy. The journal records retractions.
 */
export function findLacking(local: readonly SettledRange[], shared: readonly SettledRange[]): LedgerPiece[] {
  const lacking: LedgerPiece[] = [];
  for (const [claim, ranges] of Map.groupBy(local, toClaim)) {
    const isLost = ranges[0]?.proof === "lost";
    const same = shared.filter((each) => toClaim(each) === claim || (isLost && each.proof !== "lost"));
    const kind = isLost ? "merge" : "replace";
    lacking.push(...subtract(normalise(ranges), normalise(same)).map((part) => ({ ...part, kind }) as const));
  }
  const piecesOf = (kind: LedgerPiece["kind"]) =>
    normalise(lacking.filter((piece) => piece.kind === kind)).map(({ from, to }) => ({ kind, from, to }));
  return [...piecesOf("replace"), ...piecesOf("merge")].sort((a, b) => a.from - b.from);
}

const toClaim = ({ proof, reason }: SettledRange) => `${proof} ${reason}`;

/** The time of a ledger that has one of these proofs. */
export function rangesOf(ledger: readonly SettledRange[], ...proofs: readonly Proof[]): TimeRanges {
  return normalise(ledger.filter(({ proof }) => proofs.includes(proof)));
}

/** A leader that sees what this daemon sees forwards a snapshot sooner. */
const MAX_BEHIND = 15 * 60 * MICROS_PER_SECOND;

/**
 * What a standby may add about the snapshots of a subscription, and take back. Seen: covered here − known there, as far as the
 * leader has forwarded newer ones, or is too far behind. What retention has deleted or someone has detached there stays so.
 * `claim`, the reason of such a range there, names this daemon: it alone can take it back, once it no longer covers it.
 */
export function compareSnapshots(
  local: readonly SettledRange[],
  shared: readonly SettledRange[],
  claim: string,
) {
  const covered = local.filter(({ proof }) => proof === "rows" || proof === "empty");
  const isIntended = (reason: string | null) => reason === RETENTION_REASON || reason === DETACHED_REASON;
  const known = normalise(shared.filter(({ proof, reason }) => proof !== "lost" || isIntended(reason)));
  const to = Math.max(known.at(-1)?.to ?? 0, (covered.at(-1)?.to ?? 0) - MAX_BEHIND);
  const lacking = subtract(normalise(covered), known);
  const seen = cut(covered, intersect(lacking, [{ from: Number.MIN_SAFE_INTEGER, to }]));
  return {
    seen: seen.map((range) => ({ ...range, reason: range.reason ?? claim })),
    takenBack: subtract(normalise(shared.filter(({ reason }) => reason === claim)), normalise(covered)),
  };
}

/** The parts of a ledger inside `ranges`. Both are ascending. */
export function cut(ledger: readonly SettledRange[], ranges: readonly TimeRange[]): SettledRange[] {
  const parts: SettledRange[] = [];
  let next = 0;
  for (const each of ledger) {
    while (next < ranges.length && (ranges[next] as TimeRange).to <= each.from) next++;
    for (let i = next; i < ranges.length && (ranges[i] as TimeRange).from < each.to; i++) {
      const range = ranges[i] as TimeRange;
      parts.push({ ...each, from: Math.max(each.from, range.from), to: Math.min(each.to, range.to) });
    }
  }
  return parts;
}

/** Replaces the part of a ledger inside `range` by `content`, and merges touching ranges of equal proof and reason. */
export function spliceLedger(
  ledger: readonly SettledRange[],
  range: TimeRange,
  content: readonly SettledRange[],
) {
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
    /** Where the ranges to delete begin. */
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
