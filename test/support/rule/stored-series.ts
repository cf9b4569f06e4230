import type { Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  NO_LONGER_SERVED,
  NOTHING_OLDER,
  type Publication,
  type SettledRange,
  type StoredSeries,
} from "../../../src/rule/answer.ts";

export interface StoredContent {
  /** Rows that REST has served. */
  readonly rows?: readonly Micros[];
  /** Rows that only the websocket has shown. */
  readonly previews?: readonly Micros[];
  readonly ledger?: readonly SettledRange[];
  readonly publication?: Partial<Publication> | undefined;
  /** Up to where REST has shown another series. */
  readonly othersTo?: Micros;
  readonly targetStart?: Micros | undefined;
  readonly servesRunningDay?: boolean;
}

/** What a record at `ts` disproves: each end above it; all that is no longer served, if a part of it is above. */
export function endsAbove(ledger: readonly SettledRange[], ts: Micros): readonly SettledRange[] {
  const hasReturned = ledger.some(({ reason, to }) => reason === NO_LONGER_SERVED && to > ts);
  return ledger.filter(
    ({ reason, to }) => (reason === NOTHING_OLDER && to > ts) || (reason === NO_LONGER_SERVED && hasReturned),
  );
}

/** What a warehouse with this content answers to the rule. */
export function storedSeries({
  rows = [],
  previews = [],
  ledger = [],
  publication,
  othersTo = Number.NEGATIVE_INFINITY,
  targetStart,
  servesRunningDay = false,
}: StoredContent = {}): StoredSeries {
  const all = [
    ...rows.map((ts) => ({ ts, isPreview: false })),
    ...previews.map((ts) => ({ ts, isPreview: true })),
  ].sort((a, b) => a.ts - b.ts);
  const newestOf = (timestamps: readonly Micros[], { from, to }: TimeRange) =>
    timestamps.toSorted((a, b) => a - b).findLast((ts) => from <= ts && ts < to);
  return {
    settledRanges: ({ from, to }) => ledger.filter((range) => range.from <= to && range.to >= from),
    rowsBeside: ({ from, to }, timestamps) =>
      all.filter(({ ts }) => from <= ts && ts < to && !timestamps.includes(ts)),
    newestRow: (before) => all.findLast(({ ts }) => ts < before)?.ts,
    newestServed: (range) => newestOf(rows, range),
    newestLive: (range) => newestOf(previews, range),
    endsAbove: (ts) => endsAbove(ledger, ts),
    targetStart,
    publication: publication && { publishedTo: 0, askedAt: 0, askedTo: 0, quietMargin: 0, ...publication },
    hasOtherPublished: (ts) => ts <= othersTo,
    servesRunningDay,
  };
}
