import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

/** The state of a backward walk over a gap when it requests a page. */
export interface WalkPosition {
  /** The range that the walk has to prove. Its first page was requested for `gap.to` or later. */
  readonly gap: TimeRange;
  /** Every record in `[provenFrom, gap.to)` was on an earlier page; `gap.to` before the first page. */
  readonly provenFrom: Micros;
  /** Set if the walk restarted without a cursor: the requested timestamp. Records up to it may repeat. */
  readonly anchor?: Micros;
}

export interface PageEvidence {
  /** Timestamps of the requested series' records, in page order. */
  readonly timestamps: ArrayLike<Micros>;
  /** How many records are of other series: the service did not apply the filter. */
  readonly foreign: number;
  /** The service has nothing older: a valid response without a cursor. */
  readonly isLast: boolean;
}

export interface PageProof {
  /** The part of the gap that this page proves: it and the earlier pages contain every record in it. */
  readonly proven: TimeRange | undefined;
  /** The next page's `provenFrom`. */
  readonly provenFrom: Micros;
  /** The walk has proven the gap down to its start. */
  readonly isComplete: boolean;
}

/** Why a page, and the rest of its walk, proves nothing. */
export type PageContradiction =
  /** The filter was not applied: the page may lack records of the series. */
  | { readonly contradiction: "foreign_rows" }
  /**
   * Not newest first. A stray timestamp would prove a range that no page contains, and a page in ascending
   * order may lack the newest records instead of the oldest.
   */
  | { readonly contradiction: "disordered" }
  /** A record in the proven range that no earlier page had: the walk is out of order. Retract its proof. */
  | { readonly contradiction: "newer_than_proven"; readonly retract: TimeRange };

/**
 * A page (newest first) proves only the range above its oldest record: others with the same timestamp may be
 * on the next page. The last page, and one that reaches below the gap, prove down to the gap's start.
 *
 * The number of records proves nothing: a short page is not the end.
 */
export function findProvenRange(
  { gap, provenFrom, anchor = provenFrom - 1 }: WalkPosition,
  { timestamps, foreign, isLast }: PageEvidence,
): PageProof | PageContradiction {
  if (foreign > 0) return { contradiction: "foreign_rows" };
  let previous = Number.POSITIVE_INFINITY;
  for (let at = 0; at < timestamps.length; at++) {
    const ts = timestamps[at] ?? previous;
    if (ts > previous) return { contradiction: "disordered" };
    previous = ts;
  }
  const newest = timestamps[0] ?? Number.NEGATIVE_INFINITY;
  const oldest = timestamps[timestamps.length - 1] ?? Number.POSITIVE_INFINITY;
  if (newest >= provenFrom && newest > anchor && newest < gap.to) {
    return { contradiction: "newer_than_proven", retract: { from: provenFrom, to: gap.to } };
  }
  const lower = isLast ? gap.from : Math.max(gap.from, oldest + 1);
  if (lower >= provenFrom) return { proven: undefined, provenFrom, isComplete: false };
  return { proven: { from: lower, to: provenFrom }, provenFrom: lower, isComplete: lower === gap.from };
}

/** What a first page shows about the range above its newest record. */
export interface SilenceEvidence {
  /** When the record after the newest one was due; undefined: REST has shown no record. */
  readonly nextDue: Micros | undefined;
  /** When the page was made, by the service's clock. */
  readonly asOf: Micros;
  /** A quiet series is claimed up to this long before `asOf`. */
  readonly quietMargin: Micros;
  /** A second response confirmed that there is no newer record. */
  readonly isConfirmed: boolean;
  /** Whether REST has shown another series up to the margin: then REST as a whole does not lag. */
  readonly hasOtherPublished: () => boolean;
}

/** After this much silence a series counts as quiet, even if no other series shows that REST does not lag. */
const MAX_LAG_MICROS = MICROS_PER_DAY;

/**
 * Silence above the newest record proves nothing: the service may publish late. It counts if a second response confirms it,
 * it lasts longer than the margin, and REST is not late as a whole. Returns how long before `asOf` it ends to count; undefined:
 * the series is not quiet. If REST has shown no record at all, it may be late with the first ones.
 */
export function findQuietMargin(evidence: SilenceEvidence): Micros | undefined {
  const { nextDue, asOf, quietMargin } = evidence;
  if (!evidence.isConfirmed) return undefined;
  if (nextDue === undefined)
    return evidence.hasOtherPublished() ? quietMargin : Math.max(quietMargin, MAX_LAG_MICROS);
  const silence = asOf - nextDue;
  if (silence <= quietMargin) return undefined;
  return silence > MAX_LAG_MICROS || evidence.hasOtherPublished() ? quietMargin : undefined;
}
