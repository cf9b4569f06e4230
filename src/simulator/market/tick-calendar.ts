import { DAY_MS } from "./format.ts";
import type { IndexSeries } from "./indexes.ts";

const WINDOW_MS = 200 * DAY_MS;
const INTRADAY_START_MS = Date.UTC(2019, 5, 1);

/** Decides which index ticks exist, and when each becomes visible. */
export class TickCalendar {
  readonly tickMs: number;

  constructor(tickMs: number) {
    this.tickMs = tickMs;
  }

  newestTick(nowMs: number): number {
    return Math.floor(nowMs / this.tickMs);
  }

  /** The oldest tick of the trailing 200-day window. */
  oldestTickInWindow(nowMs: number): number {
    return Math.ceil(Math.max(nowMs - WINDOW_MS, INTRADAY_START_MS) / this.tickMs);
  }

  firstTickOfDay(day: number): number {
    return Math.ceil((day * DAY_MS) / this.tickMs);
  }

  /** All ticks of an index, inside the window or not: [first, end). */
  tickRange(series: IndexSeries): { first: number; end: number } {
    return { first: this.firstTickOfDay(series.firstDay), end: this.firstTickOfDay(series.endDay) };
  }

  /** Whether the index has a value at this tick. */
  isListed(series: IndexSeries, tick: number): boolean {
    const { first, end } = this.tickRange(series);
    return tick >= first && tick < end;
  }

  /** Whether the service has published the tick by `nowMs`. Ignores the window. */
  isPublished(_series: IndexSeries, tick: number, nowMs: number): boolean {
    return tick * this.tickMs <= nowMs;
  }
}
