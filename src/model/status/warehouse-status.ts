import type { Stream } from "../streams.ts";
import type { Confirmations } from "./gap-state.ts";
import type { ServiceCondition } from "./service-condition.ts";
import type { ShareStatus } from "./share-status.ts";

/** One stream as `status --json` and `/api/status` show it. */
export interface StreamStatus {
  readonly stream: Stream;
  /** Where coverage begins and ends; null: there is none. */
  readonly from_time: string | null;
  readonly to_time: string | null;
  readonly rows: number;
  /** Gaps that will be fetched; the seconds are those of all series, and of the series that lacks the most. */
  readonly open: number;
  readonly open_seconds: number;
  readonly open_max_seconds: number;
  /** Gaps of which the service must only repeat that nothing else is there: young heads, ends, indices that were not found. */
  readonly unconfirmed: number;
  /** Seconds since the beginning of the oldest open gap; null: there is none. */
  readonly oldest_open_age_s: number | null;
  /** Gaps that the service can no longer fill. */
  readonly lost: number;
  readonly lost_seconds: number;
  readonly lost_max_seconds: number;
  /** Seconds since the newest row, or since the last refresh of a lookup. */
  readonly newest_age_s: number | null;
  /** Whether the settings still select something of it. A lookup counts always. */
  readonly is_followed: boolean;
  readonly last_error: string | null;
  readonly last_error_at: string | null;
  readonly missing_scopes: readonly string[];
  /** How much later the websocket stamps ticks than REST; null: not at all, or unknown. */
  readonly live_offset_ms: number | null;
}

/** The warehouse and its disk. */
export interface DiskStatus {
  readonly warehouse_bytes: number;
  readonly wal_bytes: number;
  readonly free_bytes: number;
  /** At the present growth; null without growth, or with less than an hour of history. */
  readonly full_in_days: number | null;
}

/** A claim against stored rows as `status --json` shows it: they are withdrawn, or older than all that is served. */
export interface WithdrawalStatus {
  readonly stream: Stream;
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly from_time: string;
  readonly to_time: string;
  readonly rows: number;
  /** How many equal answers of the service made the claim. */
  readonly answers: number;
  readonly first_seen: string;
  /** When the claim was accepted; null: unconfirmed. */
  readonly believed_at: string | null;
}

/** Why the last daemon on this warehouse ended unexpectedly. */
export interface LastCrash {
  readonly at: string;
  /** The code of the failure, or `unexpected`. */
  readonly code: string;
  /** One line without secrets. */
  readonly line: string;
}

export interface WarehouseStatus {
  readonly generated_at: string;
  readonly warehouse: string;
  /** The REST address of the service that the data is from; null: nothing is stored yet, or by an older version. */
  readonly service_url: string | null;
  /** The service's clock minus this machine's, when a daemon or a command last compared them. */
  readonly clock_skew_s: number;
  readonly streams: readonly StreamStatus[];
  readonly confirmations: Confirmations;
  readonly disk: DiskStatus;
  /** The last run of each scheduled job; empty if none ever ran. */
  readonly jobs: readonly { readonly job: string; readonly ended_at: string; readonly outcome: string }[];
  /** Many rows that the service no longer has: unconfirmed, or withdrawn within a week. */
  readonly withdrawals: readonly WithdrawalStatus[];
  /** When and why a daemon last crashed; null: never. */
  readonly last_crash: LastCrash | null;
}

/** `service`, `problem` and `shared`: as the running daemon sees them; null if none runs. */
export interface StatusReport extends WarehouseStatus {
  readonly service: ServiceCondition | null;
  readonly problem: string | null;
  readonly shared?: ShareStatus | null;
}
