/*
 * What can be told to the metrics. These are shapes, not imports: telemetry looks into no room that it measures, and
 * what the rooms have at hand fits as it is.
 */

/** What the service's client and the live feed tell whoever counts. */
export type ServiceObservation =
  | {
      readonly kind: "request";
      /** The template, without any identifier. */
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

/** Subscriptions by how they stand. */
export interface FeedStanding {
  readonly connected: boolean;
  readonly following: number;
  /** Not confirmed, or silent: polled meanwhile. */
  readonly doubt: number;
  /** The service does not serve them for now. */
  readonly parked: number;
}

/** What became of the records of one commit. */
export interface CommitCounts {
  readonly inserted?: number;
  readonly changed?: number;
  readonly unchanged?: number;
  readonly outranked?: number;
  readonly withdrawn?: number;
  readonly rejected?: number;
  readonly foreign?: number;
}

export interface StorageFigures {
  /** The file without its WAL. */
  readonly warehouseBytes: number;
  readonly walBytes: number;
  readonly freeBytes: number;
  /** Undefined until an hour of sizes is known; Infinity without growth. */
  readonly daysUntilFull: number | undefined;
}

/** A stream as `status` shows it. */
export interface StreamFigures {
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
