import type { Audience, Feed, TickNews } from "../api-server/source.ts";
import { topicsOfIndex, topicsOfListing } from "../api-server/subscription.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { World } from "./world.ts";

/** Sends each tick to the subscribers, at the timestamp of the tick. */
export function followMarket(world: World, clock: Clock, audience: Audience): Feed {
  let cancel: Cancel | undefined;
  const newestTick = () => world.calendar.newestTick(clock.now());
  /** Schedules the next tick, and repeats while any client is subscribed. */
  const subscriptionsChanged = () => {
    const next = newestTick() + 1;
    cancel ??= clock.after(next * world.calendar.tickMs - clock.now(), () => {
      cancel = undefined;
      // If the wall clock was set back meanwhile, this tick is not due yet.
      if (newestTick() >= next)
        audience.deliver(renderTicks(world, audience.topics, newestTick(), clock.now()));
      if (audience.hasSubscribers) subscriptionsChanged();
    });
  };
  const stop = () => {
    cancel?.();
    cancel = undefined;
  };
  return { subscriptionsChanged, stop };
}

/** The messages of one tick on these topics: the records that REST serves, with an event name. */
export function renderTicks(
  { calendar, table, ticks, exchangeTickers }: World,
  subscribed: ReadonlySet<string>,
  tick: number,
  nowMs: number,
): TickNews[] {
  const isWanted = (topics: readonly string[]) => topics.some((topic) => subscribed.has(topic));
  const news: TickNews[] = [];
  for (const series of table.all) {
    const topics = topicsOfIndex(series.type, series.id);
    // It sends late ticks on time.
    const isSent =
      calendar.isListed(series, tick) && calendar.isPublished(series, tick, Number.POSITIVE_INFINITY);
    if (!isSent || !isWanted(topics)) continue;
    const name = series.type === "LX" ? series.name : undefined;
    const message = { event: "INDEX_TICKER", name, ...ticks.record(series, tick, nowMs) };
    news.push({ topics, texts: [JSON.stringify(message)] });
  }
  const listed = exchangeTickers(tick, ({ exchange, market }) =>
    isWanted(topicsOfListing(exchange.id, market.id)),
  );
  for (const { lastMoved: _onlyInRest, ...fields } of listed) {
    const text = JSON.stringify({ event: "EXCHANGE_TICKER", ...fields });
    news.push({ topics: topicsOfListing(fields.exchangeId, fields.marketId), texts: [text] });
  }
  return news;
}
