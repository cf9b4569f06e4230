import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";

/** What a claim is about. `repetition.ts` says for each how often the service must repeat it. */
export type ClaimKind =
  /** The page has all records of the range. */
  | "records"
  /** Rows that only the websocket has shown, or few that REST served, are not there. */
  | "gone"
  /** Many rows that REST served are not there. */
  | "withdrawn"
  /** Nothing is older. */
  | "end"
  /** Nothing is older, though REST served older records before. */
  | "end moved"
  /** The index does not exist, or not any more. */
  | "not found"
  /** What was accepted before holds for the time since. */
  | "still absent";

/** Why a range is empty or lost. */
export const NO_RECORDS = "no records";
export const NOTHING_OLDER = "nothing older";
export const NO_LONGER_SERVED = "no longer served";
export const NOT_FOUND = "not found";
/** Why it is lost: older than the service's window, or than the retention. */
export const AGED_OUT_REASON = "aged out";
export const RETENTION_REASON = "retention";

/** What a response says about a range of a series. */
export interface Claim {
  readonly kind: ClaimKind;
  readonly range: TimeRange;
  /** `rows`: the warehouse has all records of the range; `empty`: the service has none. */
  readonly says: "rows" | "empty";
  /** The stored rows that are gone, or the oldest record above an end. Equal claims have equal ones. */
  readonly subject: readonly Micros[];
  /** Why the range is empty. */
  readonly because: string;
  /** Below this, REST served records before: what is open there is lost, not empty. */
  readonly lostTo?: Micros | undefined;
}

/** A claim that the service must repeat, as the warehouse stores it: pending, or accepted. The rule reads no accepted withdrawals. */
export interface PendingClaim {
  readonly kind: ClaimKind;
  readonly range: TimeRange;
  readonly subject: readonly Micros[];
  /** How many answers made it, the first and the last of them. */
  readonly answers: number;
  readonly firstAt: Micros;
  readonly lastAt: Micros;
  /** When it was accepted; null: pending. */
  readonly acceptedAt: Micros | null;
}

/** The ranges in which the service lacked many rows, and has not repeated it often enough. */
export function holesOf(pending: readonly PendingClaim[]): TimeRange[] {
  return pending.filter(({ kind }) => kind === "withdrawn").map(({ range }) => range);
}
