import { backoffDelay, type Random } from "../../runtime/backoff.ts";

/**
 * What a failed attempt says. `refused`: no connection to the host, whatever is asked. `failed`: this request failed.
 * `timeout`: it held a slot for a minute. `go_away`: the service answers, and wants fewer requests. `no_token`: every request
 * waits for a token.
 */
export type FailureSign = "refused" | "failed" | "timeout" | "go_away" | "no_token";

/** While one request in four succeeds, so many failures in a row are very rare, and so are fewer over a longer time. */
const MAX_FAILURES = 40;
const LONG_RUN = { failures: 16, ms: 15_000 };

/** Whether the failures in a row of one endpoint open its breaker. `ms`: since the first of them. */
export function opensBreaker(failures: number, ms: number): boolean {
  return failures >= MAX_FAILURES || (failures >= LONG_RUN.failures && ms >= LONG_RUN.ms);
}

/** Doubt costs one request, that of the witness. */
const MIN_HOST_FAILURES = 3;
/** So rare is a run of failures at which everything counts as down, given the share of requests that fail anyway. */
const MAX_CHANCE = 1e-5;

/** After so many failures in a row, whatever the endpoint, everything may be down: 3 if hardly any fails, 41 of 75 %. */
export function failuresToDoubt(failedShare: number): number {
  const failures = Math.ceil(Math.log(MAX_CHANCE) / Math.log(failedShare));
  return Math.max(MIN_HOST_FAILURES, failures);
}

export const INITIAL_FAILED_SHARE = 0.25;
const SHARE_MEMORY = 30;

/** The share of requests that fail, after one more success. `failures`: in a row before it. */
export function nextFailedShare(share: number, failures: number): number {
  return (share * SHARE_MEMORY + failures) / (SHARE_MEMORY + failures + 1);
}

/** As how many failures each counts: a timeout blocks a slot for a minute, and only one token request is in flight. */
export const failureWeights: Readonly<Record<FailureSign, number>> = {
  refused: 1,
  failed: 1,
  go_away: 1,
  no_token: 5,
  timeout: 8,
};

/** For an attempt without a complete response. */
export function networkSign(code: string): FailureSign {
  if (/^(connection_refused|connect_timeout|dns_failed|network_unreachable)$/.test(code)) return "refused";
  return code === "timeout" ? "timeout" : "failed";
}

/** What nobody asks for is lost, and a probe costs little: 1,239 in an hour, with the websocket fewer than 1,300. */
const URGENT_BACKOFF = { baseMs: 2_950, maxMs: 2_950, jitter: 0.03 };
const PROBE_BACKOFF = { baseMs: 2_000, maxMs: 90_000, jitter: 0.5 };

/** How long after a failed probe the next one follows. `failedProbes`: before it. `isAlone`: others have answered since. */
export function probeDelayMs(
  failedProbes: number,
  view: { readonly isUrgent: boolean; readonly isAlone: boolean; readonly sign: FailureSign },
  random: Random,
): number {
  const isQuick = view.isUrgent && !view.isAlone && view.sign !== "go_away";
  return backoffDelay(failedProbes, isQuick ? URGENT_BACKOFF : PROBE_BACKOFF, random);
}

/** After 1, 8, 64 … failed probes the witness is asked again: what fails may be only what is probed. */
const PROBES_PER_WITNESS = 8;

export function asksWitnessAgain(failedProbes: number): boolean {
  return Number.isInteger(Math.log2(failedProbes) / Math.log2(PROBES_PER_WITNESS));
}

/**
 * Why a live connection ended. `refused`: there was none. `dropped`: it was accepted, or the service failed (5xx).
 * `rejected`: the service does not want it (4xx on the upgrade). `denied`: so by a rule, or without any valid credentials.
 */
export type ConnectionEnd = "refused" | "dropped" | "rejected" | "denied";

/** The service said "go away": the next attempts are minutes apart, whatever else works again. */
export function isUnwanted(end: ConnectionEnd): boolean {
  return end === "rejected" || end === "denied";
}

interface ReconnectView {
  /** Since the last connection that lasted. */
  readonly attempts: number;
  /** Unwanted ends in a row, this one included. */
  readonly rejections: number;
  readonly end: ConnectionEnd;
  readonly isUrgent: boolean;
  /** REST probes already, and its first success rings: the feed waits for its turn among the probes. */
  readonly isRestDown: boolean;
  readonly retryAfterMs: number;
}

const FIRST_REJECTION_MS = 1_000;
const RECONNECT_BACKOFF = { baseMs: 1_000, maxMs: 60_000 };
const UNWANTED_BACKOFF = { baseMs: 60_000, maxMs: 3_600_000 };

/** How long the feed waits before it connects again. */
export function reconnectDelayMs(view: ReconnectView, random: Random): number {
  return Math.max(ownDelayMs(view, random), view.retryAfterMs);
}

function ownDelayMs(view: ReconnectView, random: Random): number {
  const { attempts, rejections, end, isUrgent, isRestDown } = view;
  // A single 4xx on the upgrade may be a mistake of the service.
  if (end === "rejected" && rejections === 1) return FIRST_REJECTION_MS;
  if (isUnwanted(end))
    return UNWANTED_BACKOFF.baseMs + backoffDelay(rejections - 1, UNWANTED_BACKOFF, random);
  if (isRestDown && attempts > 0) return RECONNECT_BACKOFF.maxMs;
  const quick = { ...URGENT_BACKOFF, baseMs: RECONNECT_BACKOFF.baseMs };
  const backoff = isUrgent && end === "refused" ? quick : RECONNECT_BACKOFF;
  return backoffDelay(Math.max(0, attempts - 1), backoff, random);
}

const MIN_STABLE_MS = 60_000;

/** How many attempts still count after a connection: a stable one clears them, ticks alone take half of them back. */
export function remainingAttempts(attempts: number, hasTicks: boolean, connectedMs: number): number {
  if (!hasTicks) return attempts;
  return connectedMs >= MIN_STABLE_MS ? 0 : Math.floor(attempts / 2);
}
