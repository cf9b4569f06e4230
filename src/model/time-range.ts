import { formatTimestamp, type Micros } from "./time.ts";

/** Half-open: includes `from`, excludes `to`. */
export interface TimeRange {
  readonly from: Micros;
  readonly to: Micros;
}

/** Normalised: ascending, disjoint, no two touch, none is empty. Every function here returns such a list. */
export type TimeRanges = readonly TimeRange[];

/** Sorts and merges ranges; drops empty ones. */
export function normalise(ranges: Iterable<TimeRange>): TimeRanges {
  const sorted = [...ranges].filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from);
  const merged: TimeRange[] = [];
  for (const range of sorted) {
    const last = merged.at(-1);
    if (last && range.from <= last.to) {
      if (range.to > last.to) merged[merged.length - 1] = { from: last.from, to: range.to };
    } else merged.push(range);
  }
  return merged;
}

export function union(a: TimeRanges, b: TimeRanges): TimeRanges {
  return normalise([...a, ...b]);
}

/** The parts of `a` that are not in `b`. */
export function subtract(a: TimeRanges, b: TimeRanges): TimeRanges {
  const remaining: TimeRange[] = [];
  let next = 0;
  for (const range of a) {
    let from = range.from;
    while (next < b.length && (b[next] as TimeRange).to <= from) next++;
    for (let i = next; i < b.length && (b[i] as TimeRange).from < range.to; i++) {
      const cut = b[i] as TimeRange;
      if (cut.from > from) remaining.push({ from, to: cut.from });
      from = Math.max(from, cut.to);
    }
    if (from < range.to) remaining.push({ from, to: range.to });
  }
  return remaining;
}

export function intersect(a: TimeRanges, b: TimeRanges): TimeRanges {
  const common: TimeRange[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const x = a[i] as TimeRange;
    const y = b[j] as TimeRange;
    const from = Math.max(x.from, y.from);
    const to = Math.min(x.to, y.to);
    if (from < to) common.push({ from, to });
    if (x.to < y.to) i++;
    else j++;
  }
  return common;
}

/** The sum of all lengths, in microseconds. */
export function totalDuration(ranges: TimeRanges): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** Throws if the list is not normalised. Guards every read and write of the ledger. */
export function assertNormalised(ranges: TimeRanges): void {
  let end = Number.NEGATIVE_INFINITY;
  for (const range of ranges) {
    if (!(range.from < range.to) || !(range.from > end)) {
      throw new Error(`time ranges are not ascending and disjoint at ${formatRange(range)}`);
    }
    end = range.to;
  }
}

export function formatRange({ from, to }: TimeRange): string {
  const text = (ts: Micros) => (Number.isSafeInteger(ts) ? formatTimestamp(ts) : String(ts));
  return `[${text(from)}, ${text(to)})`;
}
