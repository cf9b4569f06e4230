import { ApiError } from "../../api-server/api-error.ts";
import { encodeFrames } from "../../api-server/frames.ts";
import { NOT_AT_SOURCE_REASON } from "../../api-server/history.ts";
import type { Session } from "../../api-server/session.ts";
import type { CoverageSegment, Feed, HistoryRecord } from "../../api-server/source.ts";
import {
  formatShort,
  formatTimestamp,
  MICROS_PER_DAY,
  MICROS_PER_MS,
  MICROS_PER_SECOND,
  type Micros,
  parseUserTime,
  USER_TIME_FORMS,
} from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { runAfterPendingMessages } from "../../runtime/clock.ts";
import type { LedgerKey } from "../../warehouse/coverage/ledger.ts";
import { NOT_FOLLOWED_REASON } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { NOT_OBSERVED_REASON } from "../../warehouse/views/gap-parts.ts";
import { readSegments } from "../records/page-coverage.ts";
import type { ServeContext } from "../served-warehouse.ts";
import { findTickSources, type Gap, type GapSubject, gapText, type TickSource } from "./tick-sources.ts";

export interface ReplayRange {
  readonly from: Micros;
  readonly to: Micros;
  /** Seconds of history per second; Infinity: as fast as the client reads. */
  readonly speed: number;
  /** The replay begins once the client has so many subscriptions. */
  readonly wait: number;
}

interface ReplayOptions extends ReplayRange, ServeContext {
  readonly session: Session;
}

const MAX_SPEED = 1_000_000;

/** Reads `?from=…&to=…&speed=…&wait=…`; undefined if the client wants the present. Throws an ApiError. */
export function parseReplayOptions(query: URLSearchParams, now: () => Micros): ReplayRange | undefined {
  if (!["from", "to", "speed", "wait"].some((name) => query.has(name))) return undefined;
  const readTime = (name: string, fallback: string) => {
    const ts = parseUserTime(query.get(name) ?? fallback, now());
    if (ts === undefined) throw new ApiError(400, `${name} must be ${USER_TIME_FORMS}`);
    return ts;
  };
  const speedText = query.get("speed") ?? "1";
  const speed = speedText === "max" ? Number.POSITIVE_INFINITY : Number(speedText);
  if (!(speed > 0) || (speed > MAX_SPEED && speedText !== "max"))
    throw new ApiError(400, `speed must be a number up to ${MAX_SPEED}, or max`);
  const wait = Number(query.get("wait") ?? "1");
  if (!Number.isSafeInteger(wait) || wait < 1) throw new ApiError(400, "wait must be a positive integer");
  const range = { from: readTime("from", ""), to: readTime("to", "now") };
  if (range.from >= range.to) throw new ApiError(400, "from must be before to");
  return { ...range, speed, wait };
}

/** Ticks that are read at once: few enough to leave the event loop free, enough to make the seeks cheap. */
const TICKS_PER_READ = 8_000;
const MIN_READ_MICROS = MICROS_PER_SECOND;
const MAX_READ_MICROS = 7 * MICROS_PER_DAY;
const FIRST_READ_MICROS = 60 * MICROS_PER_SECOND;
/** Messages of about this length are written at once. */
const CHUNK_LENGTH = 64 * 1024;
/** Ticks that are due within this time are sent together. */
const MIN_PAUSE_MS = 5;

/**
 * Sends the stored ticks of what a client subscribes to in the order of their timestamps, ties in the order of the keys, and
 * says where ticks may be missing. The same range of the same warehouse gives the same messages.
 */
export class Replay implements Feed {
  readonly #options: ReplayOptions;
  readonly #stop = new AbortController();
  #sources: readonly TickSource[] | undefined;
  #gapMessages: readonly HistoryRecord[] = [];
  #hasBegun = false;
  #ticks = 0;
  #gaps = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
  }

  /** The first subscriptions start the replay; later ones join where it is. */
  subscriptionsChanged(): void {
    this.#sources = undefined;
    if (this.#hasBegun || this.#options.session.subscriptionCount < this.#options.wait) return;
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
      const scale = Math.min(4, Math.max(0.25, TICKS_PER_READ / Math.max(1, messages.length)));
      width = Math.round(Math.min(MAX_READ_MICROS, Math.max(MIN_READ_MICROS, width * scale)));
      at = end;
      // Let other clients, and the PINGs of this one, run in between.
      await new Promise<void>((resolve) => runAfterPendingMessages(resolve));
    }
    const [ticks, gaps] = [this.#ticks, this.#gaps];
    const range = { from: formatTimestamp(from), to: formatTimestamp(to) };
    session.sendEvent("REPLAY_ENDED", { timestamp: formatShort(to), ...range, ticks, gaps });
  }

  /** The messages of `[at, end)` in the order in which they are sent: gaps before ticks of the same timestamp. */
  #read(at: Micros, end: Micros): HistoryRecord[] {
    const { warehouse, session } = this.#options;
    const { now } = warehouse;
    return warehouse.snapshot((connection) => {
      if (!this.#sources) {
        this.#sources = findTickSources(connection, (topic) => session.topics.has(topic));
        this.#gapMessages = findGapMessages(connection, this.#sources, this.#options, now);
      }
      const messages = this.#gapMessages.filter(({ ts }) => ts >= at && ts < end);
      this.#gaps += messages.length;
      for (const source of this.#sources) {
        const ticks = source.read(connection, at, end);
        this.#ticks += ticks.length;
        for (const tick of ticks) messages.push(tick);
      }
      // Stable, and fast on runs that are sorted already.
      return messages.sort((a, b) => a.ts - b.ts);
    });
  }

  async #send(messages: readonly HistoryRecord[], startedAt: number): Promise<void> {
    const { session, clock, speed, from } = this.#options;
    let texts: string[] = [];
    let length = 0;
    const flush = async () => {
      if (texts.length === 0) return;
      const frames = encodeFrames(texts);
      const count = texts.length;
      texts = [];
      length = 0;
      if (!session.write(frames, count)) await session.drained();
    };
    for (const { ts, text } of messages) {
      if (Number.isFinite(speed)) {
        const waitMs = startedAt + (ts - from) / MICROS_PER_MS / speed - clock.monotonic();
        if (waitMs > 0) {
          await flush();
          await clock.sleep(Math.max(waitMs, MIN_PAUSE_MS), this.#stop.signal);
        }
      }
      texts.push(text);
      length += text.length;
      if (length >= CHUNK_LENGTH) await flush();
      if (!session.isOpen) return;
    }
    await flush();
  }
}

const subscriptionSql = `SELECT s.series FROM series s WHERE s.index_type = '' AND s.index_id = ? AND EXISTS
  (SELECT 1 FROM settled_ranges g WHERE g.stream = 'exchange_ticks' AND g.series = s.series)`;

type GapKey = GapSubject & LedgerKey;

/** The ledger key of a source; undefined: none. Markets of an exchange share theirs. */
function findGapKey(connection: Connection, { stream, key, labels }: TickSource): GapKey | undefined {
  if (stream === "index_ticks") return { stream, series: key, labels };
  const { exchangeId = "" } = labels;
  const find = (id: string) => connection.findValue<number>(subscriptionSql, [id]);
  const ofExchange = find(exchangeId);
  if (ofExchange !== undefined) return { stream, series: ofExchange, labels: { exchangeId } };
  const series = find("");
  return series === undefined ? undefined : { stream, series, labels: {} };
}

/** The messages about ranges of the replay in which ticks may be missing. */
function findGapMessages(
  connection: Connection,
  sources: readonly TickSource[],
  range: TimeRange,
  now: Micros,
): HistoryRecord[] {
  const keys = new Map<string, GapKey>();
  for (const source of sources) {
    const key = findGapKey(connection, source);
    if (key) keys.set(`${key.stream} ${key.series}`, key);
  }
  return [...keys.values()].flatMap((key) => {
    const segments = readSegments(connection, key, range.to, now);
    return describeGaps(key, segments, range.from).map((gap) => ({ ts: gap.from, text: gapText(key, gap) }));
  });
}

/** `segments`: newest first. */
function describeGaps({ stream }: GapSubject, segments: Iterable<CoverageSegment>, start: Micros): Gap[] {
  const gaps: Gap[] = [];
  for (const { from, to, state, reason } of segments) {
    if (to <= start) break;
    if (state === "covered" || state === "empty") continue;
    const gap: Gap = { from: Math.max(from, start), to, ...describe(stream, state === "lost", reason) };
    const above = gaps.at(-1);
    if (above?.from === to && above.state === gap.state && above.reason === gap.reason)
      gaps[gaps.length - 1] = { ...gap, to: above.to };
    else gaps.push(gap);
  }
  return gaps;
}

/** Nothing of a snapshot stream can be fetched later; history before the first target was never followed. */
function describe(stream: string, isLost: boolean, reason: string | null): Pick<Gap, "state" | "reason"> {
  const isBefore = reason === NOT_AT_SOURCE_REASON;
  if (stream !== "index_ticks" && (!isLost || isBefore))
    return { state: "lost", reason: NOT_OBSERVED_REASON };
  if (!isLost) return { state: "open", reason: "not covered" };
  return { state: "lost", reason: isBefore ? NOT_FOLLOWED_REASON : (reason ?? "lost") };
}
