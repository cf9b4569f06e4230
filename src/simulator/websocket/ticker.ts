import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { World } from "../world.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSession } from "./session.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** Sends each tick to the subscribers, at the timestamp of the tick. */
export class LiveTicker {
  readonly #clock: Clock;
  readonly #world: World;
  readonly #sessions: ReadonlySet<LiveSession>;
  #cancel: Cancel | undefined;

  constructor(clock: Clock, world: World, sessions: ReadonlySet<LiveSession>) {
    this.#clock = clock;
    this.#world = world;
    this.#sessions = sessions;
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Schedules the next tick, and repeats while any client is subscribed. */
  scheduleNextTick(): void {
    if (this.#cancel) return;
    const { calendar } = this.#world;
    const newestTick = () => calendar.newestTick(this.#clock.now());
    const next = newestTick() + 1;
    this.#cancel = this.#clock.after(next * calendar.tickMs - this.#clock.now(), () => {
      this.#cancel = undefined;
      // If the wall clock was set back meanwhile, this tick is not due yet.
      if (newestTick() >= next) this.#sendTick(newestTick());
      if ([...this.#sessions].some(({ subscriptions }) => subscriptions.size > 0)) this.scheduleNextTick();
    });
  }

  /** Renders the messages once for all sessions with the same subscriptions. */
  #sendTick(tick: number): void {
    const rendered = new Map<string, { messages: string[]; frames: Buffer }>();
    for (const session of this.#sessions) {
      const { subscriptions } = session;
      if (subscriptions.size === 0) continue;
      const key = JSON.stringify([...subscriptions.keys()].sort());
      const known = rendered.get(key) ?? this.#render([...subscriptions.values()], tick);
      rendered.set(key, known);
      session.send(known.messages, known.frames);
    }
  }

  /** Renders each series once, even if several subscriptions include it. */
  #render(lists: readonly (readonly LiveSeries[])[], tick: number) {
    const series = new Map(lists.flat().map((each) => [each.key, each]));
    const messages = [...series.values()].flatMap(
      (each) => renderLiveMessage(this.#world, each, tick, this.#clock.now()) ?? [],
    );
    return { messages, frames: Buffer.concat(messages.map((message) => encodeFrame(message))) };
  }
}

/**
 * A tick as a websocket message: the record that REST serves, with an event name. Undefined when the series has no record at
 * that tick.
 */
export function renderLiveMessage(
  { calendar, ticks, exchangeTickers }: World,
  live: LiveSeries,
  tick: number,
  nowMs: number,
): string | undefined {
  if (live.kind === "exchange") {
    const record = exchangeTickers.record(live.exchange.id, live.market.id, tick);
    if (!record) return undefined;
    const { lastMoved: _onlyInRest, ...fields } = record;
    return JSON.stringify({ event: "EXCHANGE_TICKER", ...fields });
  }
  const series = live.index;
  // The quirk `late` does not apply to the websocket: it sends those ticks on time. The quirk `missingPerMille` applies.
  if (!calendar.isListed(series, tick) || !calendar.isPublished(series, tick, Number.POSITIVE_INFINITY))
    return undefined;
  const name = series.type === "LX" ? series.name : undefined;
  return JSON.stringify({ event: "INDEX_TICKER", name, ...ticks.record(series, tick, nowMs) });
}
