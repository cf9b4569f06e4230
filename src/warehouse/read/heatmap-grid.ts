import { dayOf, formatInstant, MICROS_PER_DAY, type Micros, startOfDay } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

const MICROS_PER_HOUR = MICROS_PER_DAY / 24;

/** Columns of time, `[bounds[i], bounds[i + 1])` each; the last one ends now, so that it can be whole. */
export interface TimeGrid {
  readonly bounds: readonly Micros[];
  /** `2026-03-01 14:00` for an hour, `2026-03-01` for a day, `2026-03` for a month. */
  readonly labels: readonly string[];
}

/** In the order in which a cell counts them. What is in none of them nobody has asked for. */
export const cellStates = ["covered", "settling", "open", "lost"] as const;
export type CellState = (typeof cellStates)[number];

/** How many columns in a row look the same, and what share of each is in which state: whole percents, as `cellStates`. */
export type CellRun = readonly [columns: number, ...shares: number[]];

/** The hours up to now, the one that has begun included. */
export function hourGrid(now: Micros, hours: number): TimeGrid {
  const first = Math.floor(now / MICROS_PER_HOUR) * MICROS_PER_HOUR - (hours - 1) * MICROS_PER_HOUR;
  const starts = Array.from({ length: hours }, (_, i) => first + i * MICROS_PER_HOUR);
  const labels = starts.map((start) => formatInstant(start).slice(0, 16).replace("T", " "));
  return { bounds: [...starts, now], labels };
}

export function dayGrid(now: Micros, days: number): TimeGrid {
  const first = startOfDay(now) - (days - 1) * MICROS_PER_DAY;
  const starts = Array.from({ length: days }, (_, i) => first + i * MICROS_PER_DAY);
  return { bounds: [...starts, now], labels: starts.map(dayOf) };
}

/** Whole months from the one that `from` falls into, at most `most` of them. */
export function monthGrid(from: Micros, now: Micros, most: number): TimeGrid {
  const starts: Micros[] = [];
  let start = startOfMonth(now);
  for (; starts.length < most; start = startOfMonth(start - 1)) {
    starts.unshift(start);
    if (start <= from) break;
  }
  return { bounds: [...starts, now], labels: starts.map((month) => dayOf(month).slice(0, 7)) };
}

function startOfMonth(moment: Micros): Micros {
  const day = startOfDay(moment);
  return day - (Number(dayOf(day).slice(8)) - 1) * MICROS_PER_DAY;
}

/** Adds up, for one row of a heat map, how much of each column is in which state. */
export class CellSums {
  readonly #grid: TimeGrid;
  readonly #sums: Float64Array;

  constructor(grid: TimeGrid) {
    this.#grid = grid;
    this.#sums = new Float64Array(grid.labels.length * cellStates.length);
  }

  add(range: TimeRange, state: CellState): void {
    const { bounds } = this.#grid;
    const offset = cellStates.indexOf(state);
    for (let column = columnOf(bounds, range.from); column < bounds.length - 1; column++) {
      const from = Math.max(range.from, bounds[column] ?? 0);
      const to = Math.min(range.to, bounds[column + 1] ?? 0);
      if ((bounds[column] ?? 0) >= range.to) break;
      const at = column * cellStates.length + offset;
      if (from < to) this.#sums[at] = (this.#sums[at] ?? 0) + to - from;
    }
  }

  /** What another row has counted, too. */
  addAll(other: CellSums): void {
    other.#sums.forEach((sum, at) => {
      this.#sums[at] = (this.#sums[at] ?? 0) + sum;
    });
  }

  clear(): void {
    this.#sums.fill(0);
  }

  /** The row, with the sums of `lines` lines in it. */
  runs(lines = 1): CellRun[] {
    const { bounds, labels } = this.#grid;
    const runs: [number, ...number[]][] = [];
    for (let column = 0; column < labels.length; column++) {
      const length = ((bounds[column + 1] ?? 0) - (bounds[column] ?? 0)) * lines;
      const shares = cellStates.map((_, state) =>
        percent((this.#sums[column * cellStates.length + state] ?? 0) / length),
      );
      const last = runs.at(-1);
      if (last && shares.every((share, state) => share === last[state + 1])) last[0]++;
      else runs.push([1, ...shares]);
    }
    return runs;
  }
}

/** Nothing is 0 and everything is 100; what lies between never looks like either. */
function percent(share: number): number {
  if (!(share > 0)) return 0;
  if (share >= 1) return 100;
  return Math.min(99, Math.max(1, Math.round(share * 100)));
}

/** The column that a moment falls into; 0 for what came before. */
function columnOf(bounds: readonly Micros[], moment: Micros): number {
  let low = 0;
  for (let high = bounds.length - 1; low < high; ) {
    const middle = (low + high + 1) >> 1;
    if ((bounds[middle] ?? 0) <= moment) low = middle;
    else high = middle - 1;
  }
  return low;
}
