import type { IndexSeries, IndexType } from "./index-series.ts";
import type { RecordKind } from "./record-ids.ts";

/** Records of a page, newest first: parallel lists, since pages are long. */
export interface PageRows {
  readonly series: IndexSeries[];
  readonly steps: number[];
}

/** One kind of history (ticks, daily bars): time cut into numbered steps, at most one record per index and step. */
export interface History {
  readonly name: string;
  kind(type: IndexType): RecordKind;
  /** The newest step whose record counts as "up to" this moment. */
  stepUpTo(ms: number): number;
  /** Steps at which the index may have records now: [oldest, newest]. */
  span(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists at this moment, given that its step is within the span. */
  known(series: IndexSeries, step: number, nowMs: number): boolean;
  /** Whether nothing about this step, or an older one, can change any more, other than leaving the window. */
  settled(step: number, nowMs: number): boolean;
  /** Whether a page that reaches down to this step is still the same page today. */
  reachable(step: number, nowMs: number): boolean;
  /** Whether the history's far end stands still, so that a last page may be kept. */
  readonly endsForGood: boolean;
  /** The records as the elements of a JSON array. */
  render(rows: PageRows, nowMs: number): string;
}

/** Where a walk begins: at this step, with the first index whose rank is at least this. */
export interface Start {
  readonly step: number;
  readonly rank: number;
}

/**
 * Walks back in time from `start`; within one step, along the rank of the indexes. `lanes` are sorted by rank.
 * Looks one record further than `limit` to know whether there is more; `oldest` is the step of that look.
 */
export function walkBack(
  history: History,
  lanes: readonly IndexSeries[],
  start: Start,
  limit: number,
  nowMs: number,
): { rows: PageRows; more: boolean; oldest: number } {
  const rows: PageRows = { series: [], steps: [] };
  const spans = lanes.map((series) => history.span(series, nowMs));
  let floor = Number.POSITIVE_INFINITY;
  let top = Number.NEGATIVE_INFINITY;
  for (const { oldest, newest } of spans) {
    if (newest < oldest) continue;
    floor = Math.min(floor, oldest);
    top = Math.max(top, newest);
  }
  let step = start.step;
  let lane = lanes.findIndex(({ rank }) => rank >= start.rank);
  if (lane < 0) {
    lane = 0;
    step--;
  }
  if (step > top) {
    step = top;
    lane = 0;
  }
  for (; step >= floor; step--, lane = 0) {
    for (; lane < lanes.length; lane++) {
      const series = lanes[lane] as IndexSeries;
      const span = spans[lane];
      if (!span || step < span.oldest || step > span.newest || !history.known(series, step, nowMs)) continue;
      if (rows.steps.length === limit) return { rows, more: true, oldest: step };
      rows.series.push(series);
      rows.steps.push(step);
    }
  }
  return { rows, more: false, oldest: floor };
}

/** The most recent record of every index that has one. */
export function newestOfEach(history: History, lanes: readonly IndexSeries[], nowMs: number): PageRows {
  const rows: PageRows = { series: [], steps: [] };
  for (const series of lanes) {
    const { oldest, newest } = history.span(series, nowMs);
    for (let step = newest; step >= oldest; step--) {
      if (!history.known(series, step, nowMs)) continue;
      rows.series.push(series);
      rows.steps.push(step);
      break;
    }
  }
  return rows;
}
