/** What limits the requests: the settings, or what the service showed it can bear. */
export const limitReasons = ["settings", "rate_limited", "overloaded", "paused"] as const;
export type LimitReason = (typeof limitReasons)[number];

/** The breaker over all endpoints, in lists of open breakers. */
export const HOST_SCOPE = "host";

/** How the service bears the requests at present; `service` in `/api/daemon` and `status --json`. */
export interface ServiceCondition {
  /** Requests in flight, at most. */
  readonly concurrency: number;
  /** Requests per second, at most; null: no limit. */
  readonly per_second: number | null;
  readonly reason: LimitReason;
  /** The service slows the sync down with 429s. */
  readonly throttled: boolean;
  /** Endpoints whose circuit breaker is open; `host`: the whole service fails. */
  readonly open_breakers: readonly string[];
  /** Attempts of about the last ten minutes that failed and were retried, by failure code. */
  readonly recent_failures: Readonly<Record<string, number>>;
}

/** What the service did, by the code of the failures that it caused. */
const failureWords: Readonly<Record<string, string>> = {
  too_many_requests: "answered 429",
  malformed_body: "unreadable",
  server_failure: "failed at the service",
  timeout: "timed out",
  connection_refused: "refused",
  no_list: "without a list",
  stale_response: "from a stale cache",
};

/** Says in one clause what was retried lately; undefined if nothing was. */
export function describeRecentFailures({ recent_failures: failures }: ServiceCondition): string | undefined {
  const parts = Object.entries(failures).map(([code, count]) => `${count} ${failureWords[code] ?? code}`);
  return parts.length === 0 ? undefined : `requests retried in the last 10 minutes: ${parts.join(", ")}`;
}

/** Says in one clause how the service slows the sync down; undefined if it does not. */
export function describeServiceCondition(condition: ServiceCondition): string | undefined {
  const { concurrency, per_second: perSecond, reason, open_breakers: open } = condition;
  const clauses: Record<LimitReason, string | undefined> = {
    settings: undefined,
    rate_limited: `the service limits the sync to ${formatRate(perSecond)} requests per second (429)`,
    overloaded: `the service fails above ${concurrency} request${concurrency === 1 ? "" : "s"} at once`,
    paused: "the service asked for a pause (Retry-After)",
  };
  const failing = open.includes(HOST_SCOPE)
    ? "the service does not answer"
    : open.length > 0
      ? `${open.join(", ")} keep${open.length === 1 ? "s" : ""} failing at the service`
      : undefined;
  const parts = [failing, clauses[reason]].filter((part) => part !== undefined);
  return parts.length > 0 ? parts.join(", and ") : undefined;
}

/** Two significant digits: the learned rate changes all the time. */
function formatRate(perSecond: number | null): string {
  return perSecond === null ? "any number of" : String(Number(perSecond.toPrecision(2)));
}
