import type { Audience, Feed, TickNews } from "../api-server/source.ts";
import { topicsOfIndex, topicsOfListing } from "../api-server/subscription.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { World } from "./world.ts";

/** Sends each tick to the subscribers, at the timestamp of the tick. */
export class MarketFeed implements Feed {
  readonly #world: World;
  readonly #clock: Clock;
  readonly #audience: Audience;
  #cancel: Cancel | undefined;

  constructor(world: World, clock: Clock, audience: Audience) {
    this.#world = world;
    this.#clock = clock;
    this.#audience = audience;
  }

  /** Schedules the next tick, and repeats while any client is subscribed. */
  subscriptionsChanged(): void {
    if (this.#cancel) return;
    const { calendar } = this.#world;
    const newestTick = () => calendar.newestTick(this.#clock.now());
    const next = newestTick() + 1;
    this.#cancel = this.#clock.after(next * calendar.tickMs - this.#clock.now(), () => {
      this.#cancel = undefined;
      const { topics, hasSubscribers } = this.#audience;
      // If the wall clock was set back meanwhile, this tick is not due yet.
      if (newestTick() >= next)
        this.#audience.deliver(renderTicks(this.#world, topics, newestTick(), this.#clock.now()));
      if (hasSubscribers) this.subscriptionsChanged();
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
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
  const listed = exchangeTickers.records(tick, ({ exchange, market }) =>
    isWanted(topicsOfListing(exchange.id, market.id)),
  );
  for (const { lastMoved: _onlyInRest, ...fields } of listed) {
    const text = JSON.stringify({ event: "EXCHANGE_TICKER", ...fields });
    news.push({ topics: topicsOfListing(fields.exchangeId, fields.marketId), texts: [text] });
  }
  return news;
}
