import type { IndexSeries } from "./index-series.ts";
import type { TickSource } from "./live-ticker.ts";
import type { TickCalendar } from "./tick-calendar.ts";
import type { TickHistory } from "./tick-history.ts";

export interface LiveRecords {
  calendar: TickCalendar;
  ticks: TickHistory;
  /** Writes the live form of an exchange tick; undefined when there is none. */
  exchange: TickSource["exchange"];
}

/** REST's records as live messages: the same text with an event in front, and for LX the name. */
export function liveMessages({ calendar, ticks, exchange }: LiveRecords): TickSource {
  return {
    tickMs: calendar.tickMs,
    index(series, tick, nowMs) {
      if (!existsLive(calendar, series, tick)) return undefined;
      const record = ticks.render({ series: [series], steps: [tick] }, nowMs);
      const name = series.type === "LX" ? `"name":${JSON.stringify(series.name)},` : "";
      return `{"event":"INDEX_TICKER",${name}${record.slice(1)}`;
    },
    exchange,
  };
}

/** A tick that REST shows late is live on time; one that never existed is not. */
function existsLive(calendar: TickCalendar, series: IndexSeries, tick: number): boolean {
  const { first, end } = calendar.life(series);
  return tick >= first && tick < end && calendar.known(series, tick, Number.POSITIVE_INFINITY);
}
