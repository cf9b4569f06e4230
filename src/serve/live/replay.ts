import {
  formatTimestamp,
  MICROS_PER_DAY,
  MICROS_PER_MS,
  MICROS_PER_SECOND,
  type Micros,
  parseUserTime,
  USER_TIME_FORMS,
} from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { runAfterPendingMessages } from "../../runtime/loop.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { timestampText } from "../rest/record-text.ts";
import { ServeError } from "../rest/serve-error.ts";
import type { ServedWarehouse } from "../served-warehouse.ts";
import { findGapStarts, type GapKey, gapKeyOf } from "./replay-gaps.ts";
import type { ServeSession } from "./serve-session.ts";
import { FramePacker } from "./text-frames.ts";
import { findTickSources, gapText, type TickMessage, type TickSource } from "./tick-sources.ts";

interface ReplayRange {
  readonly from: Micros;
  readonly to: Micros;
  /** How many seconds pass in one; Infinity: as fast as the client reads. */
  readonly speed: number;
  /** The replay begins once the client has so many subscriptions. */
  readonly wait: number;
}

interface ReplayOptions extends ReplayRange {
  readonly warehouse: ServedWarehouse;
  readonly session: ServeSession;
  readonly clock: Clock;
  readonly log: Log;
}

const MAX_SPEED = 1_000_000;

/** Reads `?from=…&to=…&speed=…&wait=…`; undefined if the client wants the present. Throws a ServeError. */
export function parseReplayOptions(query: URLSearchParams, now: () => Micros): ReplayRange | undefined {
  if (!["from", "to", "speed", "wait"].some((name) => query.has(name))) return undefined;
  const readTime = (name: string, fallback: string) => {
    const ts = parseUserTime(query.get(name) ?? fallback, now());
    if (ts === undefined) throw new ServeError(400, `${name} must be ${USER_TIME_FORMS}`);
    return ts;
  };
  const speedText = query.get("speed") ?? "1";
  const speed = speedText === "max" ? Number.POSITIVE_INFINITY : Number(speedText);
  if (!(speed > 0) || (speed > MAX_SPEED && speedText !== "max"))
    throw new ServeError(400, `speed must be a number up to ${MAX_SPEED}, or max`);
  const wait = Number(query.get("wait") ?? "1");
  if (!Number.isSafeInteger(wait) || wait < 1) throw new ServeError(400, "wait must be a positive integer");
  const range = { from: readTime("from", ""), to: readTime("to", "now") };
  if (range.from >= range.to) throw new ServeError(400, "from must be before to");
  return { ...range, speed, wait };
}

/** Ticks that are read at once: few enough to leave the event loop free, enough to make the seeks cheap. */
const TICKS_PER_READ = 8_000;
const MIN_READ_MICROS = MICROS_PER_SECOND;
const MAX_READ_MICROS = 7 * MICROS_PER_DAY;
const FIRST_READ_MICROS = 60 * MICROS_PER_SECOND;
/** Ticks that are due within this time are sent together. */
const MIN_PAUSE_MS = 5;

/**
 * Sends the stored ticks of what a client subscribes to in the order of their timestamps, ties in the order of the keys, and
 * says where ticks may be missing. The same range of the same warehouse gives the same messages.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #stop = new AbortController();
  #sources: readonly TickSource[] | undefined;
  #subscriptions = 0;
  #hasBegun = false;
  #ticks = 0;
  #gaps = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
  }

  /** The first subscriptions start the replay; later ones join where it is. */
  subscriptionsChanged(): void {
    this.#sources = undefined;
    this.#subscriptions++;
    if (this.#hasBegun || this.#subscriptions < this.#options.wait) return;
    this.#hasBegun = true;
    this.#run().catch((error: unknown) => {
      if (this.#stop.signal.aborted) return;
      this.#options.log.error({ error: String(error) }, "replay failed");
      this.#options.session.close(1011, "the replay failed");
    });
  }

  stop(): void {
    this.#stop.abort(new Error("the replay was stopped"));
  }

  async #run(): Promise<void> {
    const { from, to, session, clock } = this.#options;
    const startedAt = clock.monotonic();
    let width = FIRST_READ_MICROS;
    for (let at = from; at < to && session.isOpen; ) {
      const end = Math.min(to, at + width);
      const messages = this.#read(at, end);
      await this.#send(messages, startedAt);
      const scale = TICKS_PER_READ / Math.max(1, messages.length);
      width = Math.min(
        MAX_READ_MICROS,
        Math.max(MIN_READ_MICROS, width * Math.min(4, Math.max(0.25, scale))),
      );
      width = Math.round(width);
      at = end;
      // Other clients, and the PINGs of this one, must not wait for the end.
      await new Promise<void>((resolve) => runAfterPendingMessages(resolve));
    }
    const [ticks, gaps] = [this.#ticks, this.#gaps];
    const range = { from: formatTimestamp(from), to: formatTimestamp(to) };
    session.sendEvent("REPLAY_ENDED", { timestamp: timestampText(to), ...range, ticks, gaps });
  }

  /** The messages of `[at, end)` in the order in which they are sent: gaps before ticks of the same timestamp. */
  #read(at: Micros, end: Micros): TickMessage[] {
    const { warehouse, session, from } = this.#options;
    return warehouse.snapshot((connection) => {
      this.#sources ??= findTickSources(connection, (topic) => session.topics.has(topic));
      const messages = this.#readGaps(connection, at, end, at === from);
      this.#gaps += messages.length;
      for (const source of this.#sources) {
        const ticks = source.read(connection, at, end, Number.MAX_SAFE_INTEGER);
        this.#ticks += ticks.length;
        for (const tick of ticks) messages.push(tick);
      }
      // Stable, and fast on runs that are sorted already.
      return messages.sort((a, b) => a.ts - b.ts);
    });
  }

  #readGaps(connection: Connection, at: Micros, end: Micros, isFirst: boolean): TickMessage[] {
    const { to: replayTo, warehouse } = this.#options;
    const keys = new Map<string, GapKey>();
    for (const source of this.#sources ?? []) {
      const key = gapKeyOf(connection, source);
      if (key) keys.set(key.name, key);
    }
    const options = { at, end, isFirst, replayTo, now: warehouse.now };
    return [...keys.values()].flatMap((key) =>
      findGapStarts(connection, key, options).map((gap) => ({ ts: gap.from, text: gapText(key, gap) })),
    );
  }

  async #send(messages: readonly TickMessage[], startedAt: number): Promise<void> {
    const { session, clock, speed, from } = this.#options;
    const packer = new FramePacker();
    let count = 0;
    const flush = async () => {
      if (count === 0) return;
      const packed = count;
      count = 0;
      if (!session.write(packer.take(), packed)) await session.drained();
    };
    for (const { ts, text } of messages) {
      if (Number.isFinite(speed)) {
        const waitMs = startedAt + (ts - from) / MICROS_PER_MS / speed - clock.monotonic();
        if (waitMs > 0) {
          await flush();
          await clock.sleep(Math.max(waitMs, MIN_PAUSE_MS), this.#stop.signal);
        }
      }
      packer.add(text);
      count++;
      if (packer.isFull) await flush();
      if (!session.isOpen) return;
    }
    await flush();
  }
}
