import type { IndexSeries } from "./market/indexes.ts";
import type { TickCalendar } from "./market/tick-calendar.ts";
import type { LiveMessageSource } from "./websocket/ticker.ts";
import type { World } from "./world.ts";

/** REST's records as live messages: the same ids and figures, in the websocket's form. */
export function createLiveMessageSource(
  world: Pick<World, "calendar" | "ticks" | "exchangeTickers" | "writer">,
): LiveMessageSource {
  const { calendar, ticks, exchangeTickers, writer } = world;
  return {
    tickMs: calendar.tickMs,
    indexMessage(series, tick, nowMs) {
      if (!isPublishedLive(calendar, series, tick)) return undefined;
      // REST's own text with an event in front, and for LX the name: no object is made for each tick.
      const record = ticks.render({ series: [series], steps: [tick] }, nowMs);
      const name = series.type === "LX" ? `"name":${JSON.stringify(series.name)},` : "";
      return `{"event":"INDEX_TICKER",${name}${record.slice(1)}`;
    },
    exchangeMessage(exchange, market, tick) {
      const record = exchangeTickers.record(exchange.id, market.id, tick);
      if (!record) return undefined;
      const { lastMoved: _restAlone, ...live } = record;
      return writer.formatRecord({ event: "EXCHANGE_TICKER", ...live });
    },
  };
}

/** A tick that REST shows late is live on time; one that never existed is not. */
function isPublishedLive(calendar: TickCalendar, series: IndexSeries, tick: number): boolean {
  const { first, end } = calendar.tickRange(series);
  return tick >= first && tick < end && calendar.isPublished(series, tick, Number.POSITIVE_INFINITY);
}
