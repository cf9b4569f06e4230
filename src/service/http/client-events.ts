import type { EventEmitter } from "node:events";
import type { RequestLimits } from "./bulkhead.ts";
import type { BreakerState } from "./outage.ts";
import type { TransportResponse } from "./transport.ts";

/** Events for metrics and progress reports. They must not contain identifiers, addresses or tokens. */
export type ClientEvent =
  | RequestEvent
  | { readonly kind: "limits"; readonly limits: RequestLimits }
  /** The endpoint; `host` if everything fails. */
  | { readonly kind: "breaker"; readonly endpoint: string; readonly state: BreakerState }
  | { readonly kind: "auth"; readonly audience: string; readonly state: AuthState }
  | { readonly kind: "walk"; readonly endpoint: string; readonly event: WalkAnomaly };

interface RequestEvent {
  readonly kind: "request";
  /** Path template such as `/asset/{id}`, or `/oauth/token`. */
  readonly endpoint: string;
  /** Undefined without a response. */
  readonly status: number | undefined;
  /** `ok`, or the failure code. */
  readonly outcome: string;
  readonly ms: number;
  /** Compressed size of the body. */
  readonly bytes: number;
  /** Starts at 1. */
  readonly attempt: number;
  /** The response came from a cache and is older than the request. */
  readonly stale: boolean;
}

export type AuthState =
  | "unknown"
  | "ok"
  | "auth_failed"
  | "credentials_rejected"
  | "secret_unreadable"
  | "auth_malformed"
  | "auth_unreachable";

/** What went wrong in a paginated walk, whether or not the walk recovered. */
export type WalkAnomaly =
  | "cycle"
  | "dead_cursor"
  | "contradiction"
  | "empty_pages"
  | "no_progress"
  | "unordered"
  | "size_ignored"
  | "restarted";

/** A success after failures, of REST, the websocket or the token endpoint, wakes whoever waits for the service. */
export type RecoveryBell = EventEmitter<{ ring: [] }>;

export type ClientEventListener = (event: ClientEvent) => void;

/** `ms`: how long the caller waited. If there is a response, its own duration is used: it excludes other waits. */
export function requestEvent(
  { ms, ...fields }: Pick<RequestEvent, "endpoint" | "outcome" | "ms" | "attempt">,
  response: TransportResponse | undefined,
): RequestEvent {
  return {
    kind: "request",
    ...fields,
    status: response?.status,
    ms: response?.durationMs ?? ms,
    bytes: response?.bodyBytes ?? 0,
    stale: (response?.body.ageMs ?? 0) > 0,
  };
}
