import { backoffDelay, type Random } from "../../runtime/backoff.ts";

/**
 * What a failed attempt says. `refused`: no connection to the host, whatever is asked. `failed`: this request failed.
 * `timeout`: it held a slot for a minute. `go_away`: the service answers, and wants fewer requests. `no_token`: every request
 * waits for a token.
 */
export type FailureSign = "refused" | "failed" | "timeout" | "go_away" | "no_token";

/** Requests in a row that failed, without a success in between. */
interface FailureRun {
  readonly failures: number;
  /** Since the first of them. */
  readonly ms: number;
}

/** While one request in four succeeds, forty failures in a row are very rare, and so are fewer over a longer time. */
const MAX_FAILURES = 40;
const LONG_RUNS = {
  usual: { failures: 16, ms: 15_000 },
  /** A needless probe costs less than a period that nobody has seen. */
  urgent: { failures: 8, ms: 500 },
};
/** As how many failures each counts: a timeout blocks a slot for a minute, and only one token request is in flight. */
export const failureWeights: Readonly<Record<FailureSign, number>> = {
  refused: 1,
  failed: 1,
  go_away: 1,
  no_token: 5,
  timeout: 8,
};

const refusedCodes: ReadonlySet<string> = new Set([
  "connection_refused",
  "connect_timeout",
  "dns_failed",
  "network_unreachable",
]);

/** For an attempt without a complete response. */
export function networkSign(code: string): FailureSign {
  if (refusedCodes.has(code)) return "refused";
  return code === "timeout" ? "timeout" : "failed";
}

/** Whether the failures of one endpoint open its breaker. `isUrgent`: a stream without history is synced. */
export function opensBreaker({ failures, ms }: FailureRun, isUrgent: boolean): boolean {
  const long = isUrgent ? LONG_RUNS.urgent : LONG_RUNS.usual;
  return failures >= MAX_FAILURES || (failures >= long.failures && ms >= long.ms);
}

/** A refused connection concerns every endpoint; so many in a row need no witness. */
const MAX_REFUSALS = 5;

export function isHostDown(refusalsInARow: number): boolean {
  return refusalsInARow >= MAX_REFUSALS;
}

/** What one probe costs nobody notices; what nobody probes is lost: 1,231 probes in an hour. */
const URGENT_BACKOFF = { baseMs: 1_500, maxMs: 3_000, jitter: 0.05 };
const USUAL_BACKOFF = { baseMs: 2_000, maxMs: 90_000, jitter: 0.5 };

export interface OutageView {
  readonly isUrgent: boolean;
  /** Others have answered since: only this endpoint fails. */
  readonly isAlone: boolean;
  readonly sign: FailureSign;
}

/** How long after a failed probe the next one follows. `failedProbes`: before this one. */
export function probeDelayMs(failedProbes: number, view: OutageView, random: Random): number {
  const isQuick = view.isUrgent && !view.isAlone && view.sign !== "go_away";
  return backoffDelay(failedProbes, isQuick ? URGENT_BACKOFF : USUAL_BACKOFF, random);
}

/** A probe that failed asks the witness again after 1, 2, 4, 8 … failed probes. */
export function asksWitnessAgain(failedProbes: number): boolean {
  return Number.isInteger(Math.log2(failedProbes));
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
  /** REST probes already, and its first success rings. */
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
  if (isRestDown) return RECONNECT_BACKOFF.maxMs;
  const backoff = isUrgent && end === "refused" ? URGENT_BACKOFF : RECONNECT_BACKOFF;
  return backoffDelay(Math.max(0, attempts - 1), backoff, random);
}

const MIN_STABLE_MS = 60_000;

/** How many attempts still count after a connection: a stable one clears them, ticks alone take half of them back. */
export function remainingAttempts(attempts: number, hasTicks: boolean, connectedMs: number): number {
  if (!hasTicks) return attempts;
  return connectedMs >= MIN_STABLE_MS ? 0 : Math.floor(attempts / 2);
}
