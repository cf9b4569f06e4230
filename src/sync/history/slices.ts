import { type HistoryStream, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { intersect, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { SeriesKey } from "../../warehouse/coverage/ledger.ts";

/** New rows of a full page: of 2000 rows, a cursor may repeat one, and one must lie below the range. */
export const ROWS_PER_PAGE = 1998;
const PAGES_PER_SLICE = 4;

/** Ranges that leave the service's window within this time are filled directly after the head. */
const AT_RISK_MICROS = 2 * MICROS_PER_DAY;

/** Sorted: the most urgent kind of slice is filled first. */
export const urgencies = ["head", "expiring", "bars", "history"] as const;
type Urgency = (typeof urgencies)[number];

/** A part of a gap with one urgency. */
export interface Slice {
  readonly range: TimeRange;
  readonly urgency: Urgency;
}

/** A series of which a walk fetches a part. */
export interface WalkedSeries {
  readonly key: SeriesKey;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Length of the history that the service serves; null: unlimited. */
  readonly serviceWindow: Micros | null;
  /** The time between two records, by the settings. */
  readonly period: Micros;
  /** The same as far as the rows of the series have shown it. */
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  /** A quiet series is covered up to this long before now. */
  readonly quietMargin: Micros;
  /** The record at which the history begins, by an unconfirmed answer. */
  readonly knownEnd: Micros | undefined;
  /** Why earlier runs could not fill the series; null: nothing blocked them. */
  readonly blockedReason: string | null;
}

/** A slice and its series. */
export interface SliceWalk extends Slice {
  readonly series: WalkedSeries;
  /** The range reaches the end of the target: newer records are fetched too, but not covered. */
  readonly isHead: boolean;
}

interface SliceOptions {
  readonly stream: HistoryStream;
  /** Ascending, disjoint. */
  readonly open: readonly TimeRange[];
  /** End of the target: a range that reaches it is the head. */
  readonly targetEnd: Micros;
  /** Start of the service's window. */
  readonly windowStart: Micros;
  /** Time between rows. */
  readonly cadence: Micros;
}

/**
 * Cuts the gaps of one series by urgency, newest first: the head, what expires soon, and the rest. Idle workers split
 * long slices further (see WalkQueue). Daily bars are not cut: their whole history is a few pages.
 */
export function cutIntoSlices({ stream, open, targetEnd, windowStart, cadence }: SliceOptions): Slice[] {
  if (isDaily(stream)) return open.toReversed().map((range) => ({ range, urgency: "bars" }));
  const length = sliceLength(cadence);
  return open.toReversed().flatMap((range): Slice[] => {
    const headFrom = range.to >= targetEnd ? Math.max(range.from, range.to - length) : range.to;
    const safeFrom = Math.min(headFrom, Math.max(range.from, windowStart + AT_RISK_MICROS));
    const slices: Slice[] = [
      { range: { from: headFrom, to: range.to }, urgency: "head" },
      { range: { from: safeFrom, to: headFrom }, urgency: "history" },
      { range: { from: range.from, to: safeFrom }, urgency: "expiring" },
    ];
    return slices.filter(({ range: { from, to } }) => from < to);
  });
}

/** The duration of a slice of full pages: the longest head, and what `verify` compares at a time. */
export const sliceLength = (cadence: Micros) => PAGES_PER_SLICE * ROWS_PER_PAGE * cadence;

/** The steps in which the grid of a series follows its spacing, so that it rarely changes. */
const GRID_STEP = 1.04;

/** The cadence on which the grid of a series is based: of a sparse series, a slice is longer. */
export function gridCadence(cadence: Micros, spacing: Micros | undefined): Micros {
  const steps = Math.floor(Math.log((spacing ?? cadence) / cadence) / Math.log(GRID_STEP));
  return Math.round(cadence * GRID_STEP ** Math.max(0, steps));
}

/** Cuts ranges on a fixed grid that starts in 1970, so that a timestamp always falls into the same piece. */
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

/** Compares slices of any series for sorting, the most urgent first. */
export function compareUrgency(a: Slice, b: Slice): number {
  const rank = urgencies.indexOf(a.urgency) - urgencies.indexOf(b.urgency);
  if (rank !== 0) return rank;
  // Of the expiring slices the oldest comes first, because it expires first. Otherwise the newest comes first.
  return a.urgency === "expiring" ? a.range.from - b.range.from : b.range.to - a.range.to;
}

/** The minimum number of pages of a walk over the range. */
export function countPages(range: TimeRange, cadence: Micros): number {
  return Math.max(1, Math.ceil((range.to - range.from) / cadence / ROWS_PER_PAGE));
}

/** What precedes a history is not cut: the walk over the oldest rows confirms all of it with one request. */
export function joinBeforeHistory(pieces: readonly TimeRange[], beforeHistory: TimeRanges): TimeRange[] {
  const [joined, alone] = [new Map<Micros, TimeRange>(), [] as TimeRange[]];
  for (const range of beforeHistory)
    if (pieces.some(({ from }) => from === range.to)) joined.set(range.to, range);
    else alone.push(range);
  const extended = pieces.map(({ from, to }) => ({ from: joined.get(from)?.from ?? from, to }));
  return [...alone, ...extended].sort((a, b) => a.from - b.from);
}

/** Removes what lies before `windowStart`: the service may drop it before the response arrives. */
export function dropExpired(open: TimeRanges, windowStart: Micros): TimeRanges {
  return intersect(open, [{ from: windowStart, to: Number.POSITIVE_INFINITY }]);
}
