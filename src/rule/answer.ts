import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";

/** All that one page of a backward walk shows of a series. */
export interface PageAnswer {
  /** The range that the walk has to prove. Its first page was requested for `gap.to` or later. */
  readonly gap: TimeRange;
  /** Earlier pages have every record in `[provenFrom, gap.to)`; `gap.to` before the first page. */
  readonly provenFrom: Micros;
  /** An earlier page has shown the record just below `provenFrom`. Default: whether `provenFrom` lies within the gap. */
  readonly isContinued?: boolean | undefined;
  /** Set if the walk restarted by timestamp: records up to it may repeat. */
  readonly anchor?: Micros | undefined;
  /** Of the series' own records that are not from the future, in page order. */
  readonly timestamps: readonly Micros[];
  /** Of all its records that are stored, also of those that prove nothing. Default: `timestamps`. */
  readonly rows?: readonly Micros[] | undefined;
  /** How many records are of other series; 0 if equal pages have shown that the service always sends them. */
  readonly foreign: number;
  /** A valid response without a cursor: the service has nothing older. */
  readonly isLast: boolean;
  /** The walk begins at the present: its first page has the newest records. */
  readonly isHead: boolean;
  /** A second response showed no record between the newest one and the end of the gap either. */
  readonly isSilenceConfirmed: boolean;
  /** When the service made the page, or an earlier one of its walk, by its own clock; undefined: it did not say. */
  readonly madeAt: Micros | undefined;
  /** When the service made the page, or else when it arrived. */
  readonly asOf: Micros;
  /** From a cache, or requested before a page that is committed already: newer rows may be stored. */
  readonly isStale: boolean;
}

/** What the settings and the service's documentation say about a series. */
export interface SeriesRules {
  /** The time between two records. */
  readonly period: Micros;
  /** The service may still add records younger than this. */
  readonly settleDelay: Micros;
  /** How late records of the stream have appeared lately; 0: in time. */
  readonly lateness: Micros;
  /** Coverage ends at a multiple of this: a day for daily bars, 1 for ticks. */
  readonly step: Micros;
  /** A record spans a day. */
  readonly isDaily: boolean;
  /** A series without new records is covered up to this long before the present. */
  readonly quietMargin: Micros;
  /** Records below this may be gone, since they leave the service's window. */
  readonly windowStart: Micros;
  /** An end of the history is claimed down to here. */
  readonly floor: Micros;
  /** By this machine's clock, in case the service's is wrong; undefined: unknown. */
  readonly present?: Micros | undefined;
}

/** `rows`: all records of the range are stored; `empty`: the service has none; `lost`: it no longer serves them. */
export type Proof = "rows" | "empty" | "lost";

export interface SettledRange extends TimeRange {
  readonly proof: Proof;
  readonly reason: string | null;
}

/** What REST has shown of a series at its head. */
export interface Publication {
  /** The newest record that REST has shown plus one period; 0: none. */
  readonly publishedTo: Micros;
  /** When the head was last requested, by the service's clock; 0: never. */
  readonly askedAt: Micros;
  /** The request asked for everything up to here. */
  readonly askedTo: Micros;
  /** The series is quiet: it is covered up to this long before the present. 0: it is not. */
  readonly quietMargin: Micros;
}

export interface StoredRow {
  readonly ts: Micros;
  /** Only the websocket has shown it. */
  readonly isPreview: boolean;
}

/** What the warehouse has of a series before an answer is written. Every member only reads. */
export interface StoredSeries {
  /** The settled ranges that overlap or touch the range, ascending. */
  settledRanges(range: TimeRange): readonly SettledRange[];
  /** The rows of the range other than those at `timestamps`, ascending. */
  rowsBeside(range: TimeRange, timestamps: readonly Micros[]): readonly StoredRow[];
  /** The newest row before `ts`. */
  newestRow(ts: Micros): Micros | undefined;
  /** The newest row of the range that REST has served. */
  newestServed(range: TimeRange): Micros | undefined;
  /** The newest row of the range that no current page of REST has; undefined if the websocket does not deliver the series. */
  newestLive(range: TimeRange): Micros | undefined;
  /** The ranges that an end of the history has settled, if one of them lies above `ts`. */
  endsAbove(ts: Micros): readonly TimeRange[];
  /** Where the settings begin to select the series; undefined: they never did. */
  readonly targetStart: Micros | undefined;
  readonly publication: Publication | undefined;
  /** REST has shown another series of the same type up to `ts`. */
  hasOtherPublished(ts: Micros): boolean;
  /** The service has served the bar of a day that had not ended. */
  readonly servesRunningDay: boolean;
}

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
