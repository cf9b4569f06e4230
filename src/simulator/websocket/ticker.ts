import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { FaultScript } from "../faults/script.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { SimulatedExchange, SimulatedMarket } from "../market/universe.ts";
import { applyTickFaults } from "./faults.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSession } from "./session.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** Renders ticks as websocket messages: the same records that REST serves, with an event name. */
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

/** Sends each tick to the subscribers, at the timestamp of the tick. */
export class LiveTicker {
  /** Undefined: no faults. */
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

  /** Sends the last `ticks` ticks of each series again to one client. */
  replay(session: LiveSession, series: readonly LiveSeries[], ticks: number): void {
    const newest = this.#newestTick();
    for (let tick = newest - ticks + 1; tick <= newest; tick++)
      session.write(Buffer.concat(series.flatMap((each) => this.#renderFrames(each, tick))));
  }

  #newestTick(): number {
    return Math.floor(this.#clock.now() / this.#source.tickMs);
  }

  /** Schedules the next tick, and repeats while any client is subscribed. */
  scheduleNextTick(): void {
    if (this.#cancel) return;
    const { tickMs } = this.#source;
    const next = this.#newestTick() + 1;
    this.#cancel = this.#clock.after(next * tickMs - this.#clock.now(), () => {
      this.#cancel = undefined;
      // If the wall clock was set back meanwhile, this tick is not due yet.
      if (this.#newestTick() >= next) this.#sendTick(this.#newestTick());
      if ([...this.#sessions].some(({ subscriptions }) => subscriptions.size > 0)) this.scheduleNextTick();
    });
  }

  #sendTick(tick: number): void {
    const faults = this.faults?.linesFor("tick").length ? this.faults : undefined;
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

  /** The series of each session. Sessions with the same subscriptions share one array, so that it is rendered once. */
  #subscribers(): [LiveSession, readonly LiveSeries[]][] {
    const shared = new Map<string, readonly LiveSeries[]>();
    return [...this.#sessions]
      .filter(({ isMuted, subscriptions }) => !isMuted && subscriptions.size > 0)
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
    return series.kind === "index"
      ? this.#source.indexMessage(series.index, tick, now)
      : this.#source.exchangeMessage(series.exchange, series.market, tick, now);
  }
}

/** Contains each series once, even if several subscriptions include it. */
function mergeSeries(lists: readonly (readonly LiveSeries[])[]): readonly LiveSeries[] {
  if (lists.length === 1) return lists[0] ?? [];
  return [...new Map(lists.flat().map((series) => [series.key, series])).values()];
}
