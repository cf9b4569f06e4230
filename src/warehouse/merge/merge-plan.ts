import type { Stream } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { RETENTION_REASON } from "../rows/retention.ts";
import type { Transaction } from "../tables/transaction.ts";

/** All time that a row may have: from 1970 to the last day with a year of four digits. */
const ALL_TIME: TimeRange = { from: 0, to: (Date.UTC(9999, 11, 31) / 86_400_000) * MICROS_PER_DAY };

/** What a merge has brought, or would bring. */
export interface StreamCounts {
  /** Rows, or entries of a lookup, that were new. */
  rows: number;
  /** Our rows without a proof that differed; they are in `revisions`. */
  replaced: number;
  /** Our rows without a proof that the other warehouse proves not to exist; they are in `revisions`. */
  withdrawn: number;
  /** How much time is covered now and was not before. */
  micros: Micros;
}

export type MergeCounts = Record<Stream, StreamCounts>;

/** A part of a merge, committed in one transaction. A killed merge is completed by the next one. */
export interface MergeStep {
  readonly stream: Stream;
  /** How many rows of the other warehouse it reads. */
  readonly rows: number;
  readonly work: (transaction: Transaction) => void;
}

/** A range that only the other warehouse has proven. */
export interface MergePiece extends TimeRange {
  readonly proof: "rows" | "empty";
  readonly reason: string | null;
}

export interface KeyMergePlan {
  /** Ascending and disjoint. In these ranges the other warehouse's rows replace ours. */
  readonly pieces: readonly MergePiece[];
  /** Neither has proven these ranges: a row of the other warehouse is added if we have none at its timestamp. */
  readonly unproven: TimeRanges;
}

/**
 * What one ledger key of another warehouse adds to ours. Where both have a proof, ours stands. `doubted`: ranges that the
 * service no longer has as we stored them; an older proof does not settle that.
 */
export function planKeyMerge(
  ours: readonly SettledRange[],
  theirs: readonly SettledRange[],
  doubted: TimeRanges = [],
): KeyMergePlan {
  // Rows that were deleted on purpose would be deleted again.
  const pruned = ours.filter(({ proof, reason }) => proof === "lost" && reason === RETENTION_REASON);
  const covered = ours.filter(({ proof }) => proof !== "lost");
  const closed = normalise([...covered, ...pruned, ...doubted]);
  const proven = theirs.filter(isProven);
  const pieces = proven.flatMap(({ proof, reason, ...range }) =>
    subtract([range], closed).map(({ from, to }): MergePiece => ({ from, to, proof, reason })),
  );
  return { pieces, unproven: subtract([ALL_TIME], normalise([...closed, ...proven])) };
}

/** Rows that they have moved elsewhere they cannot give. */
function isProven<R extends SettledRange>(range: R): range is R & { readonly proof: "rows" | "empty" } {
  return range.proof === "rows" || range.proof === "empty";
}
