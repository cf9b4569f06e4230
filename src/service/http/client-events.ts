import type { EventEmitter } from "node:events";
import type { AuthState } from "../../model/status/service-condition.ts";
import type { BreakerState } from "./outage.ts";
import type { TransportResponse } from "./transport.ts";

/** Events of REST and the live feed for metrics and progress reports. They must not contain identifiers, addresses or tokens. */
export type ClientEvent =
  | ReturnType<typeof requestEvent>
  /** The endpoint; `host` if everything fails. */
  | { readonly kind: "breaker"; readonly endpoint: string; readonly state: BreakerState }
  | { readonly kind: "auth"; readonly audience: string; readonly state: AuthState }
  | { readonly kind: "walk"; readonly endpoint: string; readonly event: WalkAnomaly }
  | {
      readonly kind: "feed";
      readonly event: "attempt" | "connected" | "ended" | "swapped" | "silent";
      /** Why the connection closed, or the remedy for a stale subscription. */
      readonly reason?: string;
    }
  | { readonly kind: "unknown_event" };

/** What a request was about. */
interface RequestFields {
  /** Path template such as `/asset/{id}`, or `/oauth/token`. */
  readonly endpoint: string;
  /** `ok`, or the failure code. */
  readonly outcome: string;
  readonly ms: number;
  /** Starts at 1. */
  readonly attempt: number;
}

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
export function requestEvent({ ms, ...fields }: RequestFields, response: TransportResponse | undefined) {
  return {
    kind: "request" as const,
    ...fields,
    /** Undefined without a response. */
    status: response?.status,
    ms: response?.durationMs ?? ms,
    /** Compressed size of the body. */
    bytes: response?.bodyBytes ?? 0,
    /** The response came from a cache and is older than the request. */
    stale: (response?.body.ageMs ?? 0) > 0,
  };
}
