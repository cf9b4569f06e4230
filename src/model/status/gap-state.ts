import type { Micros } from "../time.ts";

/**
 * `open`: it will be fetched; `unconfirmed`: the service must only repeat that nothing else is there; `lost`: the service no
 * longer has it.
 */
export const gapStates = ["open", "unconfirmed", "lost"] as const;
export type GapState = (typeof gapStates)[number];

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

/** Reason of a head that only awaits its confirmation. */
export const SETTLING_REASON = "settling";
/** Reason of what precedes a history, until the service has repeated that nothing is older. */
export const END_REASON = "end unconfirmed";
/** Reason of an index that was not found, until the service has repeated it. */
export const NOT_FOUND_REASON = "not found, unconfirmed";

/** All that the service has shown of gaps with these reasons is stored. Every other gap that is not lost is `open`. */
const unconfirmedReasons = [SETTLING_REASON, END_REASON, NOT_FOUND_REASON];

/** The state of a gap that is not lost. */
export function gapState(reason: string): "open" | "unconfirmed" {
  return unconfirmedReasons.includes(reason) ? "unconfirmed" : "open";
}

/** `gapState` in SQL. */
export const gapStateSql = (reason: string) =>
  `CASE WHEN ${reason} IN (${unconfirmedReasons.map((text) => `'${text}'`).join(", ")}) THEN 'unconfirmed' ELSE 'open' END`;
