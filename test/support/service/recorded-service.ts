import type { Random } from "../../../src/runtime/clock.ts";
import { RetryBudget } from "../../../src/service/client/failure-counts.ts";
import type { LoadSign, Pace } from "../../../src/service/http/pace.ts";
import { seededRandom } from "../seeded-random.ts";

/** How a service was seen to answer: its latency, and which requests it refuses or fails. */
export interface RecordedBehaviour {
  /** From the shortest to the longest, evenly spread. */
  readonly latencyMs?: number | readonly [number, number];
  /** Accepts so many requests in each window. `bucket`: refills evenly and holds a whole window. */
  readonly limit?: { readonly requests: number; readonly ms: number; readonly window: LimitWindow };
  /** The service handles so many requests at a time, one after another: others wait, even if their client has gone. */
  readonly handlers?: number;
  /** More at once are answered 503. */
  readonly maxAtOnce?: number;
  /** What exceeds a limit is answered with this instead of 429 or 503. */
  readonly limitStatus?: 429 | 503;
  /** Random failures. */
  readonly random?: { readonly status: 429 | 500; readonly share: number };
  readonly retryAfterMs?: number;
}

type LimitWindow = "fixed" | "sliding" | "bucket";

/** A service whose behaviour changes at times (ms since the start). */
export type RecordedService = readonly (RecordedBehaviour & { readonly fromMs?: number })[];

export interface RecordedRun {
  readonly goodPerSecond: number;
  /** Requests that were answered badly, of all. */
  readonly wastedShare: number;
}

interface RunOptions {
  readonly service: RecordedService;
  readonly seconds: number;
  readonly settleSeconds: number;
  readonly seed: number;
}

/** As many walks as the gap filler runs, and its timeout. */
const WALKS = 12;
const TIMEOUT_MS = 60_000;
const MAX_ATTEMPTS = 16;

/** Walks that fetch page after page from a recorded service, as fast as the pace allows, in virtual time. */
export function runRecorded(pace: Pace, { service, seconds, settleSeconds, seed }: RunOptions): RecordedRun {
  const random = seededRandom(seed);
  const answering = new AnsweringService(service, random);
  const budget = new RetryBudget(random);
  const timeline = new Timeline();
  /** Waiting requests, by the number of their retries so far. */
  const queue: number[] = Array(WALKS).fill(0);
  let inFlight = 0;
  let hadToWait = false;
  let wakeAt = Number.POSITIVE_INFINITY;
  const counted = { good: 0, bad: 0 };

  function startWaiting(now: number): void {
    while (queue.length > 0) {
      if (inFlight >= pace.atOnce) return;
      const startAt = pace.startAt;
      if (startAt > now) {
        hadToWait = true;
        if (startAt < wakeAt)
          timeline.add(startAt, (at) => {
            wakeAt = Number.POSITIVE_INFINITY;
            startWaiting(at);
          });
        wakeAt = Math.min(wakeAt, startAt);
        return;
      }
      pace.recordStart({ now, hadToWait, inFlight: inFlight + 1 });
      hadToWait = false;
      send(now, queue.shift() ?? 0);
    }
  }

  function send(startedAt: number, retries: number): void {
    inFlight++;
    const { sign, latencyMs, retryAfterMs } = answering.answer(startedAt);
    timeline.add(startedAt + latencyMs, (now) => {
      inFlight--;
      if (now >= settleSeconds * 1000) counted[sign === "success" ? "good" : "bad"]++;
      pace.recordAnswer({ sign, now, startedAt, retryAfterMs });
      if (sign === "success") {
        budget.recordSuccess();
        queue.push(0);
      } else {
        const waitMs = Math.max(retryAfterMs, budget.spend(retries));
        timeline.add(now + waitMs, (at) => {
          queue.push(retries + 1 < MAX_ATTEMPTS ? retries + 1 : 0);
          startWaiting(at);
        });
      }
      startWaiting(now);
    });
  }

  startWaiting(0);
  timeline.runUntil(seconds * 1000);
  return {
    goodPerSecond: counted.good / (seconds - settleSeconds),
    wastedShare: counted.bad / Math.max(1, counted.good + counted.bad),
  };
}

class AnsweringService {
  readonly #service: RecordedService;
  readonly #random: Random;
  #accepted: number[] = [];
  #tokens: { at: number; left: number } | undefined;
  #limit: RecordedBehaviour["limit"];
  #endsOfAccepted: number[] = [];
  #handlerFreeAt: number[] = [];

  constructor(service: RecordedService, random: Random) {
    this.#service = service;
    this.#random = random;
  }

  answer(now: number): { sign: LoadSign; latencyMs: number; retryAfterMs: number } {
    const behaviour = this.#service.findLast(({ fromMs = 0 }) => fromMs <= now) ?? {};
    const { latencyMs: latency = 20, limit, random, retryAfterMs = 0 } = behaviour;
    const { maxAtOnce, handlers, limitStatus } = behaviour;
    const [minMs, maxMs] = typeof latency === "number" ? [latency, latency] : latency;
    const ownMs = minMs + (maxMs - minMs) * this.#random();
    const answer = (sign: LoadSign, ms = ownMs) => {
      const isRefused = sign === "rejected";
      return { sign, latencyMs: ms, retryAfterMs: isRefused ? retryAfterMs : 0 };
    };
    if (random && this.#random() < random.share)
      return answer(random.status === 429 ? "rejected" : "failure");
    if (limit && !this.#accepts(now, limit)) return answer(limitStatus === 503 ? "overloaded" : "rejected");
    this.#endsOfAccepted = this.#endsOfAccepted.filter((end) => end > now);
    if (this.#endsOfAccepted.length >= (maxAtOnce ?? Number.POSITIVE_INFINITY))
      return answer(limitStatus === 429 ? "rejected" : "overloaded");
    const endsAt = handlers === undefined ? now + ownMs : this.#handle(now, handlers, ownMs);
    this.#endsOfAccepted.push(endsAt);
    return endsAt - now > TIMEOUT_MS ? answer("overloaded", TIMEOUT_MS) : answer("success", endsAt - now);
  }

  #handle(now: number, handlers: number, ms: number): number {
    const busy = this.#handlerFreeAt.filter((at) => at > now).sort((a, b) => a - b);
    const freeAt = busy.length < handlers ? now : (busy[busy.length - handlers] ?? now);
    this.#handlerFreeAt = [...busy, freeAt + ms];
    return freeAt + ms;
  }

  #accepts(now: number, limit: NonNullable<RecordedBehaviour["limit"]>): boolean {
    if (this.#limit !== limit) {
      this.#limit = limit;
      this.#accepted = [];
      this.#tokens = undefined;
    }
    if (limit.window === "bucket") {
      const { at, left } = this.#tokens ?? { at: now, left: limit.requests };
      const tokens = Math.min(limit.requests, left + ((now - at) * limit.requests) / limit.ms);
      this.#tokens = { at: now, left: tokens >= 1 ? tokens - 1 : tokens };
      return tokens >= 1;
    }
    // A window of the service's clock does not begin when the client does.
    const begin = now - ((now + 370) % limit.ms);
    const since = limit.window === "sliding" ? now - limit.ms : begin;
    const isOver = (at: number) => at < since || (limit.window === "sliding" && at === since);
    while (isOver(this.#accepted[0] ?? now)) this.#accepted.shift();
    if (this.#accepted.length >= limit.requests) return false;
    this.#accepted.push(now);
    return true;
  }
}

/** Calls back in the order of the times, and of the calls for equal ones. */
class Timeline {
  /** Latest first: a few walks have only a few events ahead. */
  readonly #events: { readonly at: number; readonly call: (now: number) => void }[] = [];

  add(at: number, call: (now: number) => void): void {
    const index = this.#events.findIndex((event) => event.at <= at);
    this.#events.splice(index < 0 ? this.#events.length : index, 0, { at, call });
  }

  runUntil(end: number): void {
    for (let next = this.#events.pop(); next !== undefined && next.at <= end; next = this.#events.pop())
      next.call(next.at);
  }
}
