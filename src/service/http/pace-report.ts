import type { LimitReason } from "../../model/status/service-condition.ts";
import type { BadSign } from "./answer-counts.ts";
import type { PaceState } from "./pace.ts";

/** What limits the requests, in words. */
interface PaceReport {
  readonly reason: LimitReason;
  /** Undefined: nothing but the settings. */
  readonly text: string | undefined;
  /** Monotonic. */
  readonly since: number | undefined;
}

export const PAUSE_TEXT = "the service asked for a pause (Retry-After)";
const signWords: Readonly<Record<BadSign, string>> = {
  rejected: "are answered 429",
  failure: "fail",
  timeout: "are not answered in time",
};

/** Says in one clause what limits the requests now, and since when. */
export function describePace(state: PaceState, now: number): PaceReport {
  const { limit, experiment, pausedUntil, unrelated, maxPerSecond } = state;
  if (pausedUntil > now)
    return {
      reason: "paused",
      text: PAUSE_TEXT,
      since: state.rejections.firstAt,
    };
  if (experiment) {
    const { unit, sign, since, share } = experiment;
    const reason = unit === "per_second" ? "rate_limited" : "overloaded";
    const text = `${toPercent(share)} of the requests ${signWords[sign]}, so fewer are tried`;
    return { reason, text, since };
  }
  if (limit?.unit === "per_second" && limit.ceiling < maxPerSecond) {
    const rate = Number(limit.ceiling.toPrecision(2));
    const text = `the service accepts ${rate} ${rate === 1 ? "request" : "requests"} a second`;
    return { reason: "rate_limited", text, since: limit.since };
  }
  if (limit?.unit === "at_once") {
    const count = Math.max(1, Math.round(limit.ceiling));
    const bears = limit.sign === "timeout" ? "is too slow" : "fails";
    const text = `the service ${bears} above ${count} ${count === 1 ? "request" : "requests"} at once`;
    return { reason: "overloaded", text, since: limit.since };
  }
  const [first] = Object.entries(unrelated).filter(([, { until }]) => now < until) as [
    BadSign,
    { share: number; since: number },
  ][];
  if (!first) return { reason: "settings", text: undefined, since: undefined };
  const [sign, { share, since }] = first;
  return {
    reason: "settings",
    text: `${toPercent(share)} of the requests ${signWords[sign]}, whatever the speed`,
    since,
  };
}

function toPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
