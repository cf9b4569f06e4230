import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { FaultScript } from "../faults/script.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { SimulatedExchange, SimulatedMarket } from "../market/universe.ts";
import { applyTickFaults } from "./faults.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSession } from "./session.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** Ticks as the messages that the websocket carries: the very records that REST serves, with their event. */
export interface LiveMessageSource {
  readonly tickMs: number;
  /** Undefined when the series has no record at that tick. */
  indexMessage(series: IndexSeries, tick: number, nowMs: number): string | undefined;
  exchangeMessage(
    exchange: SimulatedExchange,
    market: SimulatedMarket,
    tick: number,
    nowMs: number,
  ): string | undefined;
}

/** Sends the ticks of each refresh to whoever has subscribed, on the clock and at the very moments of the records. */
export class LiveTicker {
  /** Undefined: good days. */
  faults: FaultScript | undefined;
  readonly #clock: Clock;
  readonly #source: LiveMessageSource;
  readonly #sessions: ReadonlySet<LiveSession>;
  #cancel: Cancel | undefined;

  constructor(clock: Clock, source: LiveMessageSource, sessions: ReadonlySet<LiveSession>) {
    this.#clock = clock;
    this.#source = source;
    this.#sessions = sessions;
  }

  stop(): void {
    this.#cancel?.();
  }

  /**
   * Renders a burst for every present subscriber beforehand: `ticks` real records for each, the series in turn, at
   * successive moments that end with the tick `upTo` (the newest, unless told). The result sends it, as often as it is
   * called, and says how many were written to all clients together.
   */
  prepareBurst(ticks: number, upTo = this.#newestTick()): () => number {
    const rendered = new Map<readonly LiveSeries[], { count: number; bytes: Buffer }>();
    const audiences = this.#subscribers();
    for (const [, series] of audiences)
      if (!rendered.has(series)) rendered.set(series, this.#renderBurst(series, ticks, upTo));
    return () => {
      let written = 0;
      for (const [session, series] of audiences) {
        const burst = rendered.get(series);
        if (!burst) continue;
        session.write(burst.bytes);
        written += burst.count;
      }
      return written;
    };
  }

  #renderBurst(series: readonly LiveSeries[], ticks: number, upTo: number): { count: number; bytes: Buffer } {
    const rounds = Math.ceil(ticks / Math.max(1, series.length));
    const frames: Buffer[] = [];
    for (let tick = upTo - rounds + 1; tick <= upTo; tick++)
      for (const each of series) if (frames.length < ticks) frames.push(...this.#renderFrames(each, tick));
    return { count: frames.length, bytes: Buffer.concat(frames) };
  }

  /** The last so many ticks of each series again, to one client. */
  replay(session: LiveSession, series: readonly LiveSeries[], ticks: number): void {
    const newest = this.#newestTick();
    for (let tick = newest - ticks + 1; tick <= newest; tick++)
      session.write(Buffer.concat(series.flatMap((each) => this.#renderFrames(each, tick))));
  }

  #newestTick(): number {
    return Math.floor(this.#clock.now() / this.#source.tickMs);
  }

  /** Waits for the next tick while anybody is subscribed. */
  scheduleNextTick(): void {
    if (this.#cancel) return;
    const { tickMs } = this.#source;
    const next = this.#newestTick() + 1;
    this.#cancel = this.#clock.after(next * tickMs - this.#clock.now(), () => {
      this.#cancel = undefined;
      // The wall clock may have been stepped back meanwhile: then this tick has not come yet.
      if (this.#newestTick() >= next) this.#sendTick(this.#newestTick());
      if ([...this.#sessions].some(({ subscriptions }) => subscriptions.size > 0)) this.scheduleNextTick();
    });
  }

  #sendTick(tick: number): void {
    const faults = this.faults?.handles("tick") ? this.faults : undefined;
    const rendered = new Map<readonly LiveSeries[], Buffer>();
    for (const [session, series] of this.#subscribers()) {
      if (faults)
        session.write(
          Buffer.concat(series.flatMap((each) => this.#renderFaultyFrames(faults, session, each, tick))),
        );
      else {
        const frames =
          rendered.get(series) ?? Buffer.concat(series.flatMap((each) => this.#renderFrames(each, tick)));
        rendered.set(series, frames);
        session.write(frames);
      }
    }
  }

  /** Who gets which series; sessions with the same subscriptions share one list, so that it is rendered once. */
  #subscribers(): [LiveSession, readonly LiveSeries[]][] {
    const shared = new Map<string, readonly LiveSeries[]>();
    return [...this.#sessions]
      .filter(({ isMuted: isMute, subscriptions }) => !isMute && subscriptions.size > 0)
      .map((session) => {
        const key = JSON.stringify([...session.subscriptions.keys()].sort());
        const series = shared.get(key) ?? mergeSeries([...session.subscriptions.values()]);
        shared.set(key, series);
        return [session, series];
      });
  }

  #renderFrames(series: LiveSeries, tick: number): Buffer[] {
    const text = this.#renderMessage(series, tick);
    return text === undefined ? [] : [encodeFrame(text)];
  }

  #renderFaultyFrames(faults: FaultScript, session: LiveSession, series: LiveSeries, tick: number): Buffer[] {
    const text = this.#renderMessage(series, tick);
    return text === undefined ? [] : applyTickFaults(faults, { session, text, seriesKey: series.key, tick });
  }

  #renderMessage(series: LiveSeries, tick: number): string | undefined {
    const now = this.#clock.now();
    return series.family === "index"
      ? this.#source.indexMessage(series.index, tick, now)
      : this.#source.exchangeMessage(series.exchange, series.market, tick, now);
  }
}

/** Each series once, however many subscriptions name it. */
function mergeSeries(lists: readonly (readonly LiveSeries[])[]): readonly LiveSeries[] {
  if (lists.length === 1) return lists[0] ?? [];
  return [...new Map(lists.flat().map((series) => [series.key, series])).values()];
}
