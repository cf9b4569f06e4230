import { errorCode } from "../../model/failure.ts";
import { parseHttpDate, parseRetryAfter } from "../http/http-headers.ts";
import { findRoute, toNetworkFailure } from "../http/network-failures.ts";
import { networkSign } from "../http/outage.ts";
import type { ConnectionEnd } from "./reconnect.ts";

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
  /** Something of the service works again: retry at once. */
  readonly isRecovered?: boolean;
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
  const respondedAt = parseHttpDate(headers.date ?? "", now) ?? now;
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

/**
 * Frames that the websocket library rejects: too long, not UTF-8, compressed without negotiation, too many
 * fragments.
 */
export function isProtocolError(error: unknown): boolean {
  return errorCode(error).startsWith("WS_ERR_");
}
