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

/** A speed at which the service answered badly: requests started per second, or in flight at once. */
interface SpeedLimit {
  readonly ceiling: number;
  /** Time at the limit since the last cut: one that is not used does not grow. */
  readonly growthMs: number;
  readonly since: number;
  /** Answers to requests that started until then say nothing about the present speed. */
  readonly changedAt: number;
}

/** All times are monotonic. */
export interface PaceState {
  readonly maxAtOnce: number;
  readonly maxPerSecond: number;
  /** Successes since the start; undefined: it is over. */
  readonly startSuccesses: number | undefined;
  /** Undefined: the service showed no limit. */
  readonly rate: SpeedLimit | undefined;
  readonly atOnce: SpeedLimit | undefined;
  /** When the last request started, with that one. */
  readonly inFlight: number;
  /** Of the last answers. */
  readonly rejectedShare: number;
  /** An episode of 429s lasts until a request that started after one of them succeeds. */
  readonly rejections: { readonly count: number; readonly firstAt: number; readonly lastAt: number };
  /** When the last accepted requests were answered. */
  readonly accepted: readonly number[];
  readonly lastStartAt: number;
  /** Set after a break, until a request succeeds: a round does not start at once. */
  readonly unheardUntil: number | undefined;
  readonly nextStartAt: number;
  readonly pausedUntil: number;
  readonly undelayedStarts: number;
}

export interface ObservedAnswer {
  readonly sign: LoadSign;
  readonly now: number;
  readonly startedAt: number;
  /** How long the service asked for silence. */
  readonly retryAfterMs: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** `maxPerSecond`: 0 if none is configured. */
export function createPace(maxAtOnce: number, maxPerSecond: number): PaceState {
  return {
    maxAtOnce,
    maxPerSecond: maxPerSecond > 0 ? maxPerSecond : UNLIMITED,
    startSuccesses: 0,
    rate: undefined,
    atOnce: undefined,
    inFlight: 0,
    rejectedShare: 0,
    rejections: { count: 0, firstAt: NEVER, lastAt: NEVER },
    accepted: [],
    lastStartAt: NEVER,
    unheardUntil: undefined,
    nextStartAt: NEVER,
    pausedUntil: NEVER,
    undelayedStarts: 0,
  };
}

/** How many requests may be in flight and start per second (infinite: any number), and when the next one may start. */
export function decide(state: PaceState): { atOnce: number; perSecond: number; startAt: number } {
  const { maxAtOnce, maxPerSecond, rate, atOnce, startSuccesses = UNLIMITED } = state;
  const borne = Math.min(
    atOnce ? Math.round(speedOf(atOnce, CUTS.atOnce.keep, GROWTH_MS)) : UNLIMITED,
    Math.max(START_AT_ONCE, startSuccesses - 1),
  );
  return {
    atOnce: Math.min(maxAtOnce, Math.max(1, borne)),
    perSecond: Math.min(maxPerSecond, rate ? speedOf(rate, CUTS.rate.keep, recoveryMs(rate)) : UNLIMITED),
    startAt: Math.max(state.nextStartAt, state.pausedUntil, state.unheardUntil ?? NEVER),
  };
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

/** A request starts. `hadToWait`: the pace delayed it. `inFlight`: with this one. */
export function recordStart(
  before: PaceState,
  { now, hadToWait, inFlight }: { now: number; hadToWait: boolean; inFlight: number },
): PaceState {
  const { perSecond } = decide(before);
  const undelayedStarts = hadToWait ? 0 : before.undelayedStarts + 1;
  const isAfterBreak = inFlight === 1 && !hadToWait && now - before.lastStartAt >= SECOND_MS;
  const isUnheard = isAfterBreak || before.unheardUntil !== undefined;
  // Two hanging requests delay the rest by one second, not one minute.
  const unheardUntil = isUnheard ? (inFlight >= START_AT_ONCE ? now + SECOND_MS : NEVER) : undefined;
  const state = { ...before, unheardUntil, lastStartAt: now, undelayedStarts, inFlight };
  if (perSecond === UNLIMITED) return state;
  const interval = 1000 / perSecond;
  const catchUpMs = hadToWait ? Math.min(interval, MAX_CATCH_UP_MS) : 0;
  const nextStartAt = Math.max(before.nextStartAt, now - catchUpMs) + interval;
  const { rate, rejections } = before;
  const isUsed = hadToWait && rejections.count === 0;
  const growthMs = isUsed ? Math.min(now - before.lastStartAt, SECOND_MS) : 0;
  const isOver = undelayedStarts >= MANY_ANSWERS || perSecond >= before.maxPerSecond || interval < 1;
  const grown = rate && { ...rate, growthMs: rate.growthMs + growthMs };
  return { ...state, nextStartAt, rate: isOver ? undefined : grown };
}

/** What each sign changes: the one table of the pace. */
export function observe(before: PaceState, answer: ObservedAnswer): PaceState {
  const { sign } = answer;
  const successes = (before.startSuccesses ?? UNLIMITED) + (sign === "success" ? 1 : 0);
  const rejected = sign === "rejected" ? 1 : 0;
  const state = {
    ...before,
    startSuccesses: successes <= before.maxAtOnce ? successes : undefined,
    unheardUntil: sign === "success" || before.unheardUntil === undefined ? undefined : NEVER,
    rejectedShare: before.rejectedShare + (rejected - before.rejectedShare) / MANY_ANSWERS,
  };
  switch (sign) {
    case "success":
      return growAtOnce(recordAccepted(state, answer), answer);
    case "rejected":
      return hold(cutRate(state, answer), answer);
    case "overloaded":
      return cutAtOnce(state, answer);
    case "failure":
      return state;
  }
}

function recordAccepted(state: PaceState, { now, startedAt }: ObservedAnswer): PaceState {
  const { accepted, rejections } = state;
  const recent = accepted.slice(accepted.findIndex((at) => at > now - SECOND_MS));
  return {
    ...state,
    accepted: [...(recent.length >= SAMPLE ? recent : accepted.slice(-SAMPLE)), now],
    rejections: startedAt > rejections.lastAt ? { ...rejections, count: 0 } : rejections,
  };
}

function acceptedPerSecond({ accepted }: PaceState, now: number): number {
  const recent = accepted.filter((at) => at > now - SECOND_MS).length;
  if (recent >= SAMPLE) return (recent * 1000) / SECOND_MS;
  return (accepted.length * 1000) / Math.max(SECOND_MS, now - (accepted[0] ?? now));
}

/** A higher number at once must itself succeed before the next. */
function growAtOnce(state: PaceState, { now, startedAt }: ObservedAnswer): PaceState {
  const { atOnce: limit, inFlight, maxAtOnce } = state;
  const { atOnce } = decide(state);
  if (!limit || inFlight < atOnce || startedAt <= limit.changedAt) return state;
  const grown = { ...limit, growthMs: limit.growthMs + GROWTH_MS / MANY_ANSWERS };
  const next = decide({ ...state, atOnce: grown }).atOnce;
  if (next >= maxAtOnce) return { ...state, atOnce: undefined };
  return { ...state, atOnce: next > atOnce ? { ...grown, changedAt: now } : grown };
}

/** One cut an episode: those in flight together say it once. */
function cutRate(state: PaceState, { now, startedAt, retryAfterMs }: ObservedAnswer): PaceState {
  const { rate, rejections, rejectedShare } = state;
  const { tolerated } = retryAfterMs > 0 ? CUTS.ratePaused : CUTS.rate;
  const isCut = rejections.count > 0 && rate !== undefined && rate.changedAt >= rejections.firstAt;
  // Before anything was accepted a rejection shows no limit: the silence after it is enough.
  const isUnknown = rate === undefined && state.accepted.length === 0;
  if (isUnknown || isCut || startedAt <= rejections.lastAt || rejectedShare <= tolerated) return state;
  const accepted = acceptedPerSecond(state, now);
  const borne = Math.min(decide(state).perSecond, Math.max(accepted, rate?.ceiling ?? 0));
  // Fewer than one a second cannot be too many: that is the demand, not the limit.
  const ceiling = Math.max(1, borne);
  return { ...state, rate: { ceiling, growthMs: 0, since: rate?.since ?? now, changedAt: now } };
}

/** A rejection is followed by silence: as long as the service asks for, and twice as long as after the one before. */
function hold(state: PaceState, { now, startedAt, retryAfterMs }: ObservedAnswer): PaceState {
  const pausedUntil = Math.max(state.pausedUntil, now + retryAfterMs);
  const { count, firstAt, lastAt } = state.rejections;
  if (startedAt <= lastAt) return { ...state, pausedUntil };
  const firstMs = Math.max(1, 1000 / decide(state).perSecond);
  const holdMs = count === 0 ? firstMs : Math.max(2 * firstMs, HOLD_MS) * 2 ** (count - 1);
  const nextStartAt = Math.max(state.nextStartAt, now + Math.min(holdMs, MAX_HOLD_MS));
  const rejections = { count: count + 1, firstAt: count === 0 ? now : firstAt, lastAt: now };
  return { ...state, pausedUntil, nextStartAt, rejections };
}

function cutAtOnce(state: PaceState, { now, startedAt }: ObservedAnswer): PaceState {
  const { atOnce: limit, inFlight } = state;
  if (limit && startedAt <= limit.changedAt) return state;
  const ceiling = Math.max(1, Math.min(inFlight, decide(state).atOnce) - 1);
  return { ...state, atOnce: { ceiling, growthMs: 0, since: limit?.since ?? now, changedAt: now } };
}

export const PAUSE_TEXT = "the service asked for a pause (Retry-After)";

/** Says in one clause what limits the requests now, and since when (monotonic); without a text: nothing but the settings. */
export function describePace(
  state: PaceState,
  now: number,
): { reason: LimitReason; text?: string; since?: number } {
  const { rate, atOnce, pausedUntil, maxPerSecond } = state;
  if (pausedUntil > now) return { reason: "paused", text: PAUSE_TEXT, since: state.rejections.firstAt };
  if (rate && rate.ceiling < maxPerSecond) {
    const perSecond = Number(rate.ceiling.toPrecision(2));
    const text = `the service accepts ${perSecond} ${perSecond === 1 ? "request" : "requests"} a second`;
    return { reason: "rate_limited", text, since: rate.since };
  }
  if (atOnce) {
    const count = Math.max(1, Math.round(atOnce.ceiling));
    const text = `the service fails above ${count} ${count === 1 ? "request" : "requests"} at once`;
    return { reason: "overloaded", text, since: atOnce.since };
  }
  return { reason: "settings" };
}
