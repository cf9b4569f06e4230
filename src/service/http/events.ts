/** What the client tells whoever counts. No identifier, no address, no token ever stands in one. */
export type Observation =
  | {
      readonly kind: "request";
      /** The template, `/asset/{id}`, or `/oauth/token`. */
      readonly endpoint: string;
      /** Undefined when there was no answer. */
      readonly status: number | undefined;
      /** `ok`, or the code of the failure. */
      readonly outcome: string;
      readonly ms: number;
      /** Body bytes as they came over the wire. */
      readonly bytes: number;
      /** From 1. */
      readonly attempt: number;
      /** The answer came from a cache on the way and is older than the request. */
      readonly stale: boolean;
    }
  | { readonly kind: "concurrency"; readonly limit: number }
  | { readonly kind: "breaker"; readonly host: "data" | "token"; readonly state: "closed" | "open" }
  | { readonly kind: "auth"; readonly audience: string; readonly state: AuthState }
  | { readonly kind: "walk"; readonly endpoint: string; readonly event: WalkTrouble };

export type AuthState =
  | "unknown"
  | "ok"
  | "auth_failed"
  | "credentials_rejected"
  | "auth_malformed"
  | "auth_unreachable";

/** What a walk met and got around, or did not. */
export type WalkTrouble =
  | "cycle"
  | "dead_cursor"
  | "contradiction"
  | "empty_pages"
  | "no_progress"
  | "unordered"
  | "size_ignored"
  | "restarted";

export type Observe = (observation: Observation) => void;
