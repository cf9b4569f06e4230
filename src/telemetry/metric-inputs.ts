/*
 * The inputs of the metrics. They are declared here and not imported: telemetry imports no room that it measures. The types of
 * those rooms are structurally compatible.
 */

/** An event of the service client or the live feed. */
export type ServiceMetricEvent =
  | {
      readonly kind: "request";
      /** The path template, without ids. */
      readonly endpoint: string;
      /** `ok`, or the code of the failure. */
      readonly outcome: string;
      readonly ms: number;
      readonly bytes: number;
      readonly attempt: number;
      readonly stale: boolean;
    }
  | { readonly kind: "concurrency"; readonly limit: number }
  | { readonly kind: "breaker"; readonly host: string; readonly state: "closed" | "open" }
  | { readonly kind: "auth"; readonly audience: string; readonly state: string }
  | { readonly kind: "walk"; readonly endpoint: string; readonly event: string }
  | { readonly kind: "feed"; readonly event: string; readonly reason?: string };

/** Subscriptions by state; the names of the states are label values. */
export interface FeedMetrics {
  readonly connected: boolean;
  readonly following: number;
  /** Unconfirmed or silent; polled meanwhile. */
  readonly doubt: number;
  /** Not served by the service for now. */
  readonly parked: number;
}

/** The records of one commit by result. */
export interface CommitMetrics {
  readonly inserted?: number;
  readonly changed?: number;
  readonly unchanged?: number;
  readonly outranked?: number;
  readonly withdrawn?: number;
  readonly rejected?: number;
  readonly foreign?: number;
}

export interface StorageMetrics {
  /** The file without its WAL. */
  readonly warehouseBytes: number;
  readonly walBytes: number;
  readonly freeBytes: number;
  /** Undefined during the first hour; Infinity without growth. */
  readonly daysUntilFull: number | undefined;
}

/** A stream as `status` shows it. */
export interface StreamMetrics {
  readonly stream: string;
  readonly rows: number;
  readonly open: number;
  readonly open_seconds: number;
  readonly lost: number;
  readonly lost_seconds: number;
  readonly newest_age_s: number | null;
  readonly last_error: string | null;
  readonly missing_scopes: readonly string[];
}
