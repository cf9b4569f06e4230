import { errorCode } from "../../model/failure.ts";
import { backoffDelay, type Random } from "../../runtime/clock.ts";
import { findRoute, toNetworkFailure } from "../http/network-failures.ts";
import { networkSign } from "../http/outage.ts";
import { parseHttpDate, parseRetryAfter } from "../http/transport.ts";
import { MINUTE_MS, SECOND_MS, SLOW_BACKOFF, UNWANTED_BACKOFF, URGENT_PROBES } from "../limits.ts";

/**
 * Why a live connection ended. `refused`: there was none. `dropped`: it was accepted, or the service failed (5xx).
 * `rejected`: the service does not want it (4xx on the upgrade). `denied`: so by a rule, or without any valid credentials.
 * `recovered`: something of the service works again, so the next attempt follows at once.
 */
export type ConnectionEnd = "refused" | "dropped" | "rejected" | "denied" | "recovered";

/** The service said "go away": the next attempts are minutes apart, whatever else works again. */
export function isUnwanted(end: ConnectionEnd): boolean {
  return end === "rejected" || end === "denied";
}

/** Why a connection closed or never opened: one word for metrics and logs, never a text from the service. */
export interface CloseReason {
  readonly reason: string;
  /** What failed, with the address, and what the operator can do about it. */
  readonly cause?: string;
  readonly remedy?: string | undefined;
  /** The service rejected the token: request a new one before the next attempt. */
  readonly isTokenRejected?: boolean;
  /** Default: `dropped`. */
  readonly end?: ConnectionEnd;
  /** No token was available: retry as soon as REST gets one. */
  readonly hasNoToken?: boolean;
  /** From the service's `Retry-After`. */
  readonly retryAfterMs?: number;
}

/** For an upgrade that the service answered with an HTTP status. `now` is the local wall clock. */
export function classifyUpgradeStatus(
  status: number | undefined,
  headers: { readonly date?: string | undefined; readonly "retry-after"?: string | undefined },
  now: number,
): CloseReason {
  const reason = `http_${status ?? 0}`;
  if (status === 401) return { reason, isTokenRejected: true };
  if (status !== 429 && (status === undefined || status < 500)) return { reason, end: "rejected" };
  const respondedAt = parseHttpDate(headers.date ?? "") ?? now;
  return { reason, retryAfterMs: parseRetryAfter(headers["retry-after"], respondedAt) };
}

/**
 * `code` is 1006 if no close frame arrived. A server that has accepted the upgrade reports a bad token as
 * 1008, so before the greeting 1008 means a rejected token. Application codes (4xxx) mirror HTTP.
 */
export function classifyCloseCode(code: number, hasReceivedGreeting: boolean): CloseReason {
  const reason = `closed_${code}`;
  if (code === 4401 || (code === 1008 && !hasReceivedGreeting)) return { reason, isTokenRejected: true };
  if (code === 1008 || code === 4403 || code === 4404) return { reason, end: "denied" };
  return { reason };
}

/** Uses the error's code only: its message may quote the URL and with it the token. */
export function classifySocketError(error: unknown, url: URL): CloseReason {
  const code = errorCode(error).slice(0, 60);
  const failure = toNetworkFailure(error, findRoute(url, process.env));
  const { message: cause, remedy } = failure;
  if (code === "EMFILE" || code === "ENFILE") return { reason: "too_many_files", cause, remedy };
  const isTls = /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code);
  const reason = /^[A-Z][A-Z0-9_]+$/.test(code) ? code.toLowerCase() : "socket_error";
  const end = networkSign(failure.code) === "refused" ? "refused" : "dropped";
  return { reason, cause, remedy, end: isTls ? "denied" : end };
}

/** The library rejects frames: too long, not UTF-8, compressed without negotiation, in too many fragments. */
export function isProtocolError(error: unknown): boolean {
  return errorCode(error).startsWith("WS_ERR_");
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
}

/** How long the feed waits before it connects again, unless the service asked for more. */
export function reconnectDelayMs(view: ReconnectView, random: Random): number {
  const { attempts, rejections, end, isUrgent, isRestDown } = view;
  if (end === "recovered") return 0;
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
