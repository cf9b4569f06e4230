import { type HistoryStream, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";

/** Rows of a page of the largest size that count towards the way: a cursor may repeat one, and the last must lie below. */
export const ROWS_A_PAGE = 1998;
const PAGES_A_SLICE = 4;

/** What leaves the service's window within this time goes before all but the head. */
export const AT_RISK = 2 * MICROS_PER_DAY;

/** In the order in which they are filled. */
export const urgencies = ["head", "expiring", "bars", "history"] as const;
export type Urgency = (typeof urgencies)[number];

/** A piece of a hole that one walk fills. */
export interface Slice {
  readonly range: TimeRange;
  readonly urgency: Urgency;
}

export interface Cut {
  readonly stream: HistoryStream;
  /** Ascending, disjoint. */
  readonly open: readonly TimeRange[];
  /** Where the claim ends: a range that reaches it is the head. */
  readonly claim: Micros;
  /** Where the service's window begins; undefined: nothing is ever lost. */
  readonly edge: Micros | undefined;
  /** How far apart rows are. */
  readonly cadence: Micros;
}

/**
 * Cuts what is open of one series into walks of a whole number of pages, newest first, so that one series can use all
 * of the concurrency. Daily bars are not cut: their whole history is a few pages.
 */
export function slicesOf({ stream, open, claim, edge, cadence }: Cut): Slice[] {
  if (isDaily(stream)) return open.toReversed().map((range) => ({ range, urgency: "bars" }));
  const length = sliceLength(cadence);
  const atRiskUntil = edge === undefined ? Number.NEGATIVE_INFINITY : edge + AT_RISK;
  const slices: Slice[] = [];
  for (const range of open.toReversed()) {
    const [safe, risky] = [clip(range, atRiskUntil, range.to), clip(range, range.from, atRiskUntil)];
    for (const piece of safe ? cutFromTop(safe, length) : []) {
      slices.push({ range: piece, urgency: piece.to >= claim ? "head" : "history" });
    }
    for (const piece of risky ? cutFromTop(risky, length) : []) {
      slices.push({ range: piece, urgency: piece.to >= claim ? "head" : "expiring" });
    }
  }
  return slices;
}

/** How long the walk over a slice is at most. */
const sliceLength = (cadence: Micros) => PAGES_A_SLICE * ROWS_A_PAGE * cadence;

/** Ranges cut where slices begin that are counted from 1970: whenever it is asked, a moment is in the same piece. */
export function cutOnGrid(ranges: TimeRanges, cadence: Micros): TimeRange[] {
  const length = sliceLength(cadence);
  return ranges.flatMap((range) => {
    const pieces: TimeRange[] = [];
    for (let from = range.from; from < range.to; ) {
      const to = Math.min(range.to, (Math.floor(from / length) + 1) * length);
      pieces.push({ from, to });
      from = to;
    }
    return pieces;
  });
}

/** Which piece of the grid a range is, or is a part of. */
export function gridCell({ from }: TimeRange, cadence: Micros): number {
  return Math.floor(from / sliceLength(cadence));
}

/** Of two slices of whatever series, the one that goes first comes first. */
export function byUrgency(a: Slice, b: Slice): number {
  const rank = urgencies.indexOf(a.urgency) - urgencies.indexOf(b.urgency);
  if (rank !== 0) return rank;
  // What expires first is the oldest; of everything else the newest is worth most.
  return a.urgency === "expiring" ? a.range.from - b.range.from : b.range.to - a.range.to;
}

/** So many pages at least are needed to walk over a range. */
export function pagesFor(range: TimeRange, cadence: Micros): number {
  return Math.max(1, Math.ceil((range.to - range.from) / cadence / ROWS_A_PAGE));
}

/** What of the ranges can still be asked for: the service may drop the rest before the answer comes. */
export function reachable(open: TimeRanges, edge: Micros | undefined): TimeRanges {
  return edge === undefined ? open : subtract(open, [{ from: Number.NEGATIVE_INFINITY, to: edge }]);
}

function clip({ from, to }: TimeRange, least: Micros, most: Micros): TimeRange | undefined {
  const clipped = { from: Math.max(from, least), to: Math.min(to, most) };
  return clipped.from < clipped.to ? clipped : undefined;
}

function cutFromTop(range: TimeRange, length: Micros): TimeRange[] {
  const pieces: TimeRange[] = [];
  for (let to = range.to; to > range.from; to -= length) {
    pieces.push({ from: Math.max(range.from, to - length), to });
  }
  return pieces;
}
