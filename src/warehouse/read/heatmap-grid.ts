import { type CellRun, type CellState, cellStates } from "../../model/answers/heatmap.ts";
import { formatDay, formatMoment, MICROS_PER_DAY, type Micros, startOfDay } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

const MICROS_PER_HOUR = MICROS_PER_DAY / 24;

/** Columns of time, `[bounds[i], bounds[i + 1])` each. The last one ends now, so that it can be fully covered. */
export type TimeGrid = Readonly<ReturnType<typeof buildGrid>>;

/** The last `count` hours or days, including the current one: `2026-03-01 14:00` or `2026-03-01`; months are `2026-03`. */
export function buildGrid(now: Micros, step: "hour" | "day", count: number) {
  const length = step === "hour" ? MICROS_PER_HOUR : MICROS_PER_DAY;
  const first = Math.floor(now / length) * length - (count - 1) * length;
  const starts = Array.from({ length: count }, (_, i) => first + i * length);
  const labels = starts.map((start) => (step === "hour" ? formatMoment(start, "minute") : formatDay(start)));
  return { bounds: [...starts, now], labels };
}

/** Whole months from the month of `from` on, at most `maxMonths` of them. */
export function buildMonthGrid(from: Micros, now: Micros, maxMonths: number): TimeGrid {
  const starts: Micros[] = [];
  let start = startOfMonth(now);
  for (; starts.length < maxMonths; start = startOfMonth(start - 1)) {
    starts.unshift(start);
    if (start <= from) break;
  }
  return { bounds: [...starts, now], labels: starts.map((month) => formatDay(month).slice(0, 7)) };
}

function startOfMonth(ts: Micros): Micros {
  const day = startOfDay(ts);
  return day - (Number(formatDay(day).slice(8)) - 1) * MICROS_PER_DAY;
}

/** Sums, for one row of a heat map, how much of each column is in which state. */
export class CellSums {
  readonly #grid: TimeGrid;
  /** How many ranges contain the end of a column, as the difference to the column before: long ranges cost no more than short ones. */
  readonly #open: Int32Array;
  /** From where ranges begin in a column to its end, less from where they end. */
  readonly #partial: Float64Array;

  constructor(grid: TimeGrid) {
    this.#grid = grid;
    this.#open = new Int32Array(grid.bounds.length * cellStates.length);
    this.#partial = new Float64Array(grid.bounds.length * cellStates.length);
  }

  add(range: TimeRange, state: CellState): void {
    const { bounds } = this.#grid;
    const from = Math.max(range.from, bounds[0] ?? 0);
    const to = Math.min(range.to, bounds.at(-1) ?? 0);
    if (from >= to) return;
    this.#mark(from, state, 1);
    this.#mark(to, state, -1);
  }

  #mark(ts: Micros, state: CellState, change: 1 | -1): void {
    const { bounds } = this.#grid;
    const column = findColumn(bounds, ts);
    const at = column * cellStates.length + cellStates.indexOf(state);
    this.#open[at] = (this.#open[at] ?? 0) + change;
    this.#partial[at] = (this.#partial[at] ?? 0) + change * ((bounds[column + 1] ?? ts) - ts);
  }

  /** The row as runs; the sums are those of `keyCount` ledger keys. */
  runs(keyCount = 1): CellRun[] {
    const { bounds, labels } = this.#grid;
    const runs: [number, ...number[]][] = [];
    const open = cellStates.map(() => 0);
    for (let column = 0; column < labels.length; column++) {
      const length = (bounds[column + 1] ?? 0) - (bounds[column] ?? 0);
      const parts = cellStates.map((_, state) => {
        const at = column * cellStates.length + state;
        const before = open[state] ?? 0;
        open[state] = before + (this.#open[at] ?? 0);
        return toPercent(((this.#partial[at] ?? 0) + before * length) / (length * keyCount));
      });
      const last = runs.at(-1);
      if (last && parts.every((part, state) => part === last[state + 1])) last[0]++;
      else runs.push([1, ...parts]);
    }
    return runs;
  }
}

/** 0 and 100 are exact: any part in between is shown as 1 to 99. */
function toPercent(part: number): number {
  if (!(part > 0)) return 0;
  if (part >= 1) return 100;
  return Math.min(99, Math.max(1, Math.round(part * 100)));
}

/** The column of a timestamp; 0 for earlier ones. */
function findColumn(bounds: readonly Micros[], ts: Micros): number {
  let low = 0;
  for (let high = bounds.length - 1; low < high; ) {
    const middle = (low + high + 1) >> 1;
    if ((bounds[middle] ?? 0) <= ts) low = middle;
    else high = middle - 1;
  }
  return low;
}
