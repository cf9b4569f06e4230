import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

/** Where a backward walk over a hole stands before a page is read. */
export interface WalkPosition {
  /** What the walk is to prove. Its first page was asked for moments up to `hole.to` or later. */
  readonly hole: TimeRange;
  /** Every record in `[upper, hole.to)` was on an earlier page of this walk; `hole.to` before the first page. */
  readonly upper: Micros;
  /**
   * The timestamp that this page was asked by, when the walk had to find its place again without a cursor. Records
   * up to it were on earlier pages and come again.
   */
  readonly anchor?: Micros;
}

export interface PageEvidence {
  /** Moments of the asked series' records on the page, in the order of the page. */
  readonly moments: ArrayLike<Micros>;
  /** Records of other series on the page: the service did not apply our filter. */
  readonly foreign: number;
  /** The service has nothing older: a well-formed answer that is the last one. */
  readonly ends: boolean;
}

export interface Proof {
  /** What this page proves, within the hole: it and the earlier pages hold every record in there. */
  readonly proven: TimeRange | undefined;
  /** The next page's `upper`. */
  readonly upper: Micros;
  /** The walk has proven the hole down to its start. */
  readonly complete: boolean;
}

/** Why a page proves nothing, and the rest of its walk cannot either. */
export type Contradiction =
  /** The filter was not applied: no telling which records of ours the page left out. */
  | { readonly contradiction: "foreign_rows" }
  /**
   * Not newest first. One stray moment would claim time that nobody has read, and a service that sorts the other way
   * may have cut off the newest records instead of the oldest.
   */
  | { readonly contradiction: "disordered" }
  /**
   * A record in what earlier pages claimed to be complete, and not on them. Pages came in the wrong order, so all that
   * this walk settled must be taken back.
   */
  | { readonly contradiction: "newer_than_proven"; readonly retract: TimeRange };

/**
 * A page, newest to oldest, proves only the span above its oldest record: records that tie with the oldest may be on
 * the next page. Only a walk's last page, or one that reaches below the hole, proves down to the hole's start.
 *
 * How many records there are says nothing: a short page is not the end.
 */
export function prove(
  { hole, upper, anchor = upper - 1 }: WalkPosition,
  { moments, foreign, ends }: PageEvidence,
): Proof | Contradiction {
  if (foreign > 0) return { contradiction: "foreign_rows" };
  for (let i = 1; i < moments.length; i++) {
    if ((moments[i] as Micros) > (moments[i - 1] as Micros)) return { contradiction: "disordered" };
  }
  const newest = moments[0] ?? Number.NEGATIVE_INFINITY;
  const oldest = moments[moments.length - 1] ?? Number.POSITIVE_INFINITY;
  if (newest >= upper && newest > anchor && newest < hole.to) {
    return { contradiction: "newer_than_proven", retract: { from: upper, to: hole.to } };
  }
  const lower = ends ? hole.from : Math.max(hole.from, oldest + 1);
  if (lower >= upper) return { proven: undefined, upper, complete: false };
  return { proven: { from: lower, to: upper }, upper: lower, complete: lower === hole.from };
}
