import type { LiveMessageSource } from "./websocket/ticker.ts";
import type { World } from "./world.ts";

/** Renders the records of REST as websocket messages, with the same ids and values. */
export function createLiveMessageSource(
  world: Pick<World, "calendar" | "ticks" | "exchangeTickers" | "json">,
): LiveMessageSource {
  const { calendar, ticks, exchangeTickers, json } = world;
  return {
    tickMs: calendar.tickMs,
    indexMessage(series, tick, nowMs) {
      // The quirk `late` does not apply to the websocket: it sends those ticks on time. The quirk `missingPerMille` applies.
      if (!calendar.isListed(series, tick) || !calendar.isPublished(series, tick, Number.POSITIVE_INFINITY))
        return undefined;
      // Prepends the event (and the name for LX) to the JSON of REST.
      const record = json.formatRecord(ticks.record(series, tick, nowMs) ?? {});
      const name = series.type === "LX" ? `"name":${JSON.stringify(series.name)},` : "";
      return `{"event":"INDEX_TICKER",${name}${record.slice(1)}`;
    },
    exchangeMessage(exchange, market, tick) {
      const record = exchangeTickers.record(exchange.id, market.id, tick);
      if (!record) return undefined;
      const { lastMoved: _onlyInRest, ...live } = record;
      return json.formatRecord({ event: "EXCHANGE_TICKER", ...live });
    },
  };
}
