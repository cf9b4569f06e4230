import { DAY_MS } from "./format.ts";
import type { IndexSeries } from "./indexes.ts";

const WINDOW_MS = 200 * DAY_MS;
const INTRADAY_START_MS = Date.UTC(2019, 5, 1);

/** Decides which index ticks exist, and when each becomes visible. */
export function createTickCalendar(tickMs: number) {
  const firstTickOfDay = (day: number) => Math.ceil((day * DAY_MS) / tickMs);
  /** All ticks of an index, inside the window or not: [first, end). */
  const tickRange = ({ firstDay, endDay }: IndexSeries) => ({
    ...{ first: firstTickOfDay(firstDay), end: firstTickOfDay(endDay) },
  });
  return {
    ...{ tickMs, firstTickOfDay, tickRange },
    newestTick: (nowMs: number) => Math.floor(nowMs / tickMs),
    /** The oldest tick of the trailing 200-day window. */
    oldestTickInWindow: (nowMs: number) => Math.ceil(Math.max(nowMs - WINDOW_MS, INTRADAY_START_MS) / tickMs),
    /** Whether the index has a value at this tick. */
    isListed(series: IndexSeries, tick: number): boolean {
      const { first, end } = tickRange(series);
      return tick >= first && tick < end;
    },
    /** Whether the service has published the tick by `nowMs`. Ignores the window. */
    isPublished: (_series: IndexSeries, tick: number, nowMs: number) => tick * tickMs <= nowMs,
  };
}
