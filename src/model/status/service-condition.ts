import type { FailureCode } from "../failure.ts";
import { formatMoment } from "../time.ts";

/** What limits the requests: the settings, or what the service showed it can bear. */
export const limitReasons = ["settings", "rate_limited", "overloaded", "paused"] as const;
export type LimitReason = (typeof limitReasons)[number];

/** How the client stands with an audience, for which it needs a token. */
export const authStates = [
  "unknown",
  "ok",
  "auth_failed",
  "credentials_rejected",
  "secret_unreadable",
  "auth_malformed",
  "auth_unreachable",
] as const;
export type AuthState = (typeof authStates)[number];

/** The breaker over all endpoints, in lists of open breakers. */
export const HOST_SCOPE = "host";

/** How the service bears the requests at present; `service` in `/api/daemon` and `status --json`. */
export interface ServiceCondition {
  /** Requests in flight, at most. */
  readonly concurrency: number;
  /** Requests per second, at most; null: no limit. */
  readonly per_second: number | null;
  readonly reason: LimitReason;
  /** The same in words; null: only the settings. */
  readonly limit: string | null;
  /** Since when, in ISO 8601. */
  readonly limit_since: string | null;
  /** The service slows the sync down with 429s. */
  readonly throttled: boolean;
  /** Endpoints whose circuit breaker is open; `host`: the service fails. */
  readonly open_breakers: readonly string[];
  /** Attempts of about the last ten minutes that failed and were retried, by failure code. */
  readonly recent_failures: Readonly<Record<string, number>>;
}

/** By the code of the failure. Other codes are words already, but for the underscores. */
const failureWords: Readonly<Partial<Record<FailureCode, string>>> = {
  answer_cut: "an answer was cut off",
  auth_failed: "no token could be had",
  auth_malformed: "unreadable answer to a token request",
  auth_undecided: "a token request was refused without a reason",
  auth_unreachable: "the token endpoint does not answer",
  conflict: "the service reported a conflict (409)",
  credentials_rejected: "the service rejects the credentials",
  db_corrupt: "the warehouse file is damaged",
  db_locked: "another program locks the warehouse",
  db_not_writable: "the warehouse cannot be written",
  denied: "access denied for the moment",
  disk_full: "the disk is full",
  dns_failed: "the service's name could not be resolved",
  doubtful_list: "an implausible list",
  endpoint_failing: "an endpoint keeps failing",
  forbidden: "a scope is missing",
  gave_up: "the service did not answer for too long",
  incomplete: "not everything could be done",
  malformed_body: "unreadable answer",
  no_list: "answer without a list",
  null_list: "answer without a list",
  pagination_cycle: "the pages of a list go in circles",
  server_failure: "failure at the service (5xx)",
  service_unreachable: "the service does not answer",
  share_unreachable: "PostgreSQL does not answer",
  stale_response: "answer from a stale cache",
  timeout: "no answer in time",
  tls_failed: "no encrypted connection",
  too_many_files: "too many open files",
  too_many_requests: "too many requests (429)",
  torn_list: "a list changed while it was read",
  unproven: "a page proved nothing",
  upstream_version: "answer of another version of the service",
  withdrawal_unconfirmed: "rows vanished, not confirmed yet",
};

/** The code of a failure in words, for people. */
export function describeFailureCode(code: string): string {
  const words: Readonly<Record<string, string | undefined>> = failureWords;
  return words[code] ?? code.replace(/^http_(\d+)$/, "unexpected answer ($1)").replaceAll("_", " ");
}

/** Says in one clause what was retried lately; undefined if nothing was. */
export function describeRecentFailures({ recent_failures: failures }: ServiceCondition): string | undefined {
  const parts = Object.entries(failures).map(([code, count]) => `${count} × ${describeFailureCode(code)}`);
  return parts.length === 0 ? undefined : `requests retried in the last 10 minutes: ${parts.join(", ")}`;
}

/** Says in one clause what limits the requests, and since when; undefined: only the settings, or nothing is answered anyway. */
export function describeLimit(condition: ServiceCondition): string | undefined {
  const { limit, limit_since, reason, open_breakers } = condition;
  if (limit === null || (open_breakers.includes(HOST_SCOPE) && reason !== "paused")) return undefined;
  return limit_since === null ? limit : `${limit}, since ${formatMoment(limit_since, "minute")} UTC`;
}

/** Says in one clause how the service slows the sync down; undefined if it does not. */
export function describeServiceCondition(condition: ServiceCondition): string | undefined {
  const { open_breakers: open } = condition;
  const failing = open.includes(HOST_SCOPE)
    ? "the service does not answer"
    : open.length > 0
      ? `${open.join(", ")} keep${open.length === 1 ? "s" : ""} failing at the service`
      : undefined;
  const parts = [failing, describeLimit(condition)].filter((part) => part !== undefined);
  return parts.length > 0 ? parts.join(", and ") : undefined;
}
