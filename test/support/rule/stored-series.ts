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
  readonly publication?: Partial<Publication>;
  /** Up to where REST has shown another series. */
  readonly othersTo?: Micros;
  readonly targetStart?: Micros;
  readonly servesRunningDay?: boolean;
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
  const isOf = (reason: string) => (range: SettledRange) => range.reason === reason;
  return {
    settledRanges: ({ from, to }) => ledger.filter((range) => range.from <= to && range.to >= from),
    rowsBeside: ({ from, to }, timestamps) =>
      all.filter(({ ts }) => from <= ts && ts < to && !timestamps.includes(ts)),
    newestRow: (before) => all.findLast(({ ts }) => ts < before)?.ts,
    newestServed: (range) => newestOf(rows, range),
    newestLive: (range) => newestOf(previews, range),
    endsAbove(ts) {
      const lost = ledger.filter(isOf(NO_LONGER_SERVED));
      const ends = ledger.filter(isOf(NOTHING_OLDER)).filter(({ to }) => to > ts);
      return lost.some(({ to }) => to > ts) ? [...ends, ...lost] : ends;
    },
    targetStart,
    publication: publication && { publishedTo: 0, askedAt: 0, askedTo: 0, quietMargin: 0, ...publication },
    hasOtherPublished: (ts) => ts <= othersTo,
    servesRunningDay,
  };
}
