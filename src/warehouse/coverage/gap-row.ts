import type { GapState } from "../../model/status/gap-state.ts";
import type { Micros } from "../../model/time.ts";

/** A row of the view `gaps`. */
export interface GapRow {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from_ts: Micros;
  readonly to_ts: Micros;
  readonly from_time: string;
  readonly to_time: string;
  readonly state: GapState;
  readonly reason: string;
  /** When an open range leaves the service's window; null: never. */
  readonly lost_at: string | null;
}
