import type { LimitReason } from "../../model/status/service-condition.ts";
import {
  CUTS,
  GROWTH_MS,
  HOLD_MS,
  MANY_ANSWERS,
  MAX_CATCH_UP_MS,
  MAX_HOLD_MS,
  SAMPLE,
  SECOND_MS,
  START_AT_ONCE,
} from "../limits.ts";
import { isServerFailure } from "./status-errors.ts";

/**
 * How a request ended, as far as it says something about what the service bears. `rejected`: 429; `overloaded`: 503, or no answer
 * in time; `failure`: any other 5xx or a broken connection, which only the retry budget pays for.
 */
export type LoadSign = "success" | "rejected" | "overloaded" | "failure";

export function toLoadSign(status: number): LoadSign {
  if (status === 429) return "rejected";
  if (status === 503) return "overloaded";
  return isServerFailure(status) ? "failure" : "success";
}

export const PAUSE_TEXT = "the service asked for a pause (Retry-After)";

/** A speed at which the service answered badly: requests started per second, or in flight at once. */
interface SpeedLimit {
  readonly ceiling: number;
  /** Time at the limit since the last cut: one that is not used does not grow. */
  growthMs: number;
  readonly since: number;
  /** Answers to requests that started until then say nothing about the present speed. */
  changedAt: number;
}

interface ObservedAnswer {
  readonly sign: LoadSign;
  readonly now: number;
  readonly startedAt: number;
  /** How long the service asked for silence. */
  readonly retryAfterMs: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** How many requests may be in flight and start per second, as the answers show it. All times are monotonic. */
export class Pace {
  readonly #maxAtOnce: number;
  readonly #maxPerSecond: number;
  /** Successes since the start; infinite: it is over. */
  #startSuccesses = 0;
  /** Undefined: the service showed no limit. */
  #rate: SpeedLimit | undefined;
  #slots: SpeedLimit | undefined;
  /** When the last request started, with that one. */
  #inFlight = 0;
  /** Of the last answers. */
  #rejectedShare = 0;
  /** An episode of 429s lasts until a request that started after one of them succeeds. */
  #rejections = { count: 0, firstAt: NEVER, lastAt: NEVER };
  /** When the last accepted requests were answered. */
  #accepted: readonly number[] = [];
  #lastStartAt = NEVER;
  /** Set after a break, until a request succeeds: a round does not start at once. */
  #unheardUntil: number | undefined;
  #nextStartAt = NEVER;
  #pausedUntil = NEVER;
  #undelayedStarts = 0;

  /** `maxPerSecond`: 0 if none is configured. */
  constructor(maxAtOnce: number, maxPerSecond: number) {
    this.#maxAtOnce = maxAtOnce;
    this.#maxPerSecond = maxPerSecond > 0 ? maxPerSecond : UNLIMITED;
  }

  get atOnce(): number {
    return this.#atOnceWith(this.#slots);
  }

  #atOnceWith(limit: SpeedLimit | undefined): number {
    const borne = limit ? Math.round(speedOf(limit, CUTS.atOnce.keep, GROWTH_MS)) : UNLIMITED;
    const started = Math.max(START_AT_ONCE, this.#startSuccesses - 1);
    return Math.min(this.#maxAtOnce, Math.max(1, Math.min(borne, started)));
  }

  /** Infinite: any number. */
  get perSecond(): number {
    const borne = this.#rate ? speedOf(this.#rate, CUTS.rate.keep, recoveryMs(this.#rate)) : UNLIMITED;
    return Math.min(this.#maxPerSecond, borne);
  }

  /** When the next request may start. */
  get startAt(): number {
    return Math.max(this.#nextStartAt, this.#pausedUntil, this.#unheardUntil ?? NEVER);
  }

  /** A request starts. `hadToWait`: the pace delayed it. `inFlight`: with this one. */
  recordStart({ now, hadToWait, inFlight }: { now: number; hadToWait: boolean; inFlight: number }): void {
    const { perSecond } = this;
    const sinceStartMs = now - this.#lastStartAt;
    const isAfterBreak = inFlight === 1 && !hadToWait && sinceStartMs >= SECOND_MS;
    // Two hanging requests delay the rest by one second, not one minute.
    if (isAfterBreak || this.#unheardUntil !== undefined)
      this.#unheardUntil = inFlight >= START_AT_ONCE ? now + SECOND_MS : NEVER;
    this.#undelayedStarts = hadToWait ? 0 : this.#undelayedStarts + 1;
    this.#lastStartAt = now;
    this.#inFlight = inFlight;
    if (perSecond === UNLIMITED) return;
    const interval = 1000 / perSecond;
    const catchUpMs = hadToWait ? Math.min(interval, MAX_CATCH_UP_MS) : 0;
    this.#nextStartAt = Math.max(this.#nextStartAt, now - catchUpMs) + interval;
    const isOver = this.#undelayedStarts >= MANY_ANSWERS || perSecond >= this.#maxPerSecond || interval < 1;
    if (isOver) this.#rate = undefined;
    else if (this.#rate && hadToWait && this.#rejections.count === 0)
      this.#rate.growthMs += Math.min(sinceStartMs, SECOND_MS);
  }

  /** What each sign changes: the one table of the pace. */
  recordAnswer(answer: ObservedAnswer): void {
    const { sign } = answer;
    const rejected = sign === "rejected" ? 1 : 0;
    this.#rejectedShare += (rejected - this.#rejectedShare) / MANY_ANSWERS;
    if (this.#unheardUntil !== undefined) this.#unheardUntil = sign === "success" ? undefined : NEVER;
    switch (sign) {
      case "success":
        this.#recordAccepted(answer);
        this.#growSlots(answer);
        break;
      case "rejected":
        this.#cutRate(answer);
        this.#hold(answer);
        break;
      case "overloaded":
        this.#cutSlots(answer);
        break;
      case "failure":
    }
  }

  #recordAccepted({ now, startedAt }: ObservedAnswer): void {
    if (++this.#startSuccesses > this.#maxAtOnce) this.#startSuccesses = UNLIMITED;
    const recent = this.#accepted.slice(this.#accepted.findIndex((at) => at > now - SECOND_MS));
    this.#accepted = [...(recent.length >= SAMPLE ? recent : this.#accepted.slice(-SAMPLE)), now];
    if (startedAt > this.#rejections.lastAt) this.#rejections.count = 0;
  }

  #acceptedPerSecond(now: number): number {
    const accepted = this.#accepted;
    const recent = accepted.filter((at) => at > now - SECOND_MS).length;
    if (recent >= SAMPLE) return (recent * 1000) / SECOND_MS;
    return (accepted.length * 1000) / Math.max(SECOND_MS, now - (accepted[0] ?? now));
  }

  /** A higher number at once must itself succeed before the next. */
  #growSlots({ now, startedAt }: ObservedAnswer): void {
    const { atOnce } = this;
    const limit = this.#slots;
    if (!limit || this.#inFlight < atOnce || startedAt <= limit.changedAt) return;
    limit.growthMs += GROWTH_MS / MANY_ANSWERS;
    if (this.atOnce > atOnce) limit.changedAt = now;
    if (this.atOnce >= this.#maxAtOnce) this.#slots = undefined;
  }

  /** One cut an episode: those in flight together say it once. */
  #cutRate({ now, startedAt, retryAfterMs }: ObservedAnswer): void {
    const { tolerated } = retryAfterMs > 0 ? CUTS.ratePaused : CUTS.rate;
    const rate = this.#rate;
    const { count, firstAt, lastAt } = this.#rejections;
    const isCut = count > 0 && rate !== undefined && rate.changedAt >= firstAt;
    // Before anything was accepted a rejection shows no limit: the silence after it is enough.
    const isUnknown = rate === undefined && this.#accepted.length === 0;
    if (isUnknown || isCut || startedAt <= lastAt || this.#rejectedShare <= tolerated) return;
    const accepted = this.#acceptedPerSecond(now);
    const borne = Math.min(this.perSecond, Math.max(accepted, rate?.ceiling ?? 0));
    // Fewer than one a second cannot be too many: that is the demand, not the limit.
    this.#rate = cutTo(Math.max(1, borne), rate, now);
  }

  /** A rejection is followed by silence: as long as the service asks for, and twice as long as after the one before. */
  #hold({ now, startedAt, retryAfterMs }: ObservedAnswer): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now + retryAfterMs);
    const { count, firstAt, lastAt } = this.#rejections;
    if (startedAt <= lastAt) return;
    const firstMs = Math.max(1, 1000 / this.perSecond);
    const holdMs = count === 0 ? firstMs : Math.max(2 * firstMs, HOLD_MS) * 2 ** (count - 1);
    this.#nextStartAt = Math.max(this.#nextStartAt, now + Math.min(holdMs, MAX_HOLD_MS));
    this.#rejections = { count: count + 1, firstAt: count === 0 ? now : firstAt, lastAt: now };
  }

  #cutSlots({ now, startedAt }: ObservedAnswer): void {
    const limit = this.#slots;
    if (limit && startedAt <= limit.changedAt) return;
    this.#slots = cutTo(Math.max(1, Math.min(this.#inFlight, this.atOnce) - 1), limit, now);
  }

  /** Says in one clause what limits the requests now, and since when; without a text: nothing but the settings. */
  describe(now: number): { reason: LimitReason; text?: string; since?: number } {
    const [rate, slots] = [this.#rate, this.#slots];
    if (this.#pausedUntil > now)
      return { reason: "paused", text: PAUSE_TEXT, since: this.#rejections.firstAt };
    if (rate && rate.ceiling < this.#maxPerSecond) {
      const requests = countRequests(Number(rate.ceiling.toPrecision(2)));
      return { reason: "rate_limited", text: `the service accepts ${requests} a second`, since: rate.since };
    }
    if (!slots) return { reason: "settings" };
    const requests = countRequests(Math.max(1, Math.round(slots.ceiling)));
    return { reason: "overloaded", text: `the service fails above ${requests} at once`, since: slots.since };
  }
}

const countRequests = (count: number) => `${count} ${count === 1 ? "request" : "requests"}`;

function cutTo(ceiling: number, before: SpeedLimit | undefined, now: number): SpeedLimit {
  return { ceiling, growthMs: 0, since: before?.since ?? now, changedAt: now };
}

/** As CUBIC: back to the ceiling, ever slower, and beyond it, ever faster. */
function speedOf({ ceiling, growthMs }: SpeedLimit, keep: number, recovery: number): number {
  const beyondMs = growthMs - recovery;
  if (beyondMs < 0) return ceiling * (1 - (1 - keep) * (-beyondMs / recovery) ** 3);
  return ceiling * 2 ** ((beyondMs / GROWTH_MS) ** 2);
}

function recoveryMs({ ceiling }: SpeedLimit): number {
  // The slower the limit, the longer the way back, because each ends with a wasted request.
  return Math.min(6 * GROWTH_MS, Math.max(GROWTH_MS, (MANY_ANSWERS * 1000) / ceiling));
}
