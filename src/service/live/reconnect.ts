import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS, SLOW_BACKOFF, URGENT_PROBES } from "../limits.ts";

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

/** The service said "go away". */
const UNWANTED_BACKOFF = { baseMs: MINUTE_MS, maxMs: HOUR_MS };

/** How long the feed waits before it connects again. */
export function reconnectDelayMs(view: ReconnectView, random: Random): number {
  return Math.max(ownDelayMs(view, random), view.retryAfterMs);
}

function ownDelayMs(view: ReconnectView, random: Random): number {
  const { attempts, rejections, end, isUrgent, isRestDown } = view;
  // A single 4xx on the upgrade may be a mistake of the service.
  if (end === "rejected" && rejections === 1) return SECOND_MS;
  if (isUnwanted(end))
    return UNWANTED_BACKOFF.baseMs + backoffDelay(rejections - 1, UNWANTED_BACKOFF, random);
  if (isRestDown && attempts > 0) return SLOW_BACKOFF.maxMs;
  const quick = { ...URGENT_PROBES, baseMs: SECOND_MS };
  const backoff = isUrgent && end === "refused" ? quick : SLOW_BACKOFF;
  return backoffDelay(Math.max(0, attempts - 1), backoff, random);
}

/** How many attempts still count after a connection: a stable one clears them, ticks alone take half of them back. */
export function remainingAttempts(attempts: number, hasTicks: boolean, connectedMs: number): number {
  if (!hasTicks) return attempts;
  return connectedMs >= MINUTE_MS ? 0 : Math.floor(attempts / 2);
}
