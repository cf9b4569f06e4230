import { type HistoryStream, isDaily, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SeriesRules, SettledRange, StoredSeries } from "../../rule/answer.ts";
import {
  findEndsAbove,
  findTargetStart,
  findTouching,
  type SeriesKey,
} from "../../warehouse/coverage/ledger.ts";
import { hasOtherPublished, readPublication } from "../../warehouse/coverage/publication.ts";
import { findRowsBeside } from "../../warehouse/rows/previews.ts";
import { findNewestLiveRow, findNewestRow, findNewestServedRow } from "../../warehouse/rows/row-queries.ts";
import { readStreamTiming, type StreamTiming } from "../../warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

/** What the settings and the service say about the series of an answer. */
export type AnswerRules = Omit<SeriesRules, "lateness" | "step" | "isDaily">;

export function rulesOfStream(stream: HistoryStream): Pick<SeriesRules, "step" | "isDaily"> {
  return { step: streamTable[stream].step, isDaily: isDaily(stream) };
}

/** What a page has shown before the rule asks: it saves a query for each question. */
interface AroundPage {
  /** From the oldest record, or the end of the gap, to the newest. */
  readonly extent: TimeRange;
  /** It has no row but that of the page before, `previous`. */
  readonly isVacant: boolean;
  readonly previous: Micros | undefined;
  /** The previews that the page replaces: they do not count. */
  readonly replaced: readonly Micros[];
  readonly timing: StreamTiming | undefined;
}

/** What the warehouse has of a series before the answer is written. Read where the rule asks for it. */
export function readStoredSeries(
  transaction: Transaction,
  key: SeriesKey,
  indexType: string,
  page?: AroundPage,
): StoredSeries {
  const { stream, series } = key;
  const hasLiveFeed = streamTable[stream].event !== null;
  let nearby: readonly SettledRange[] | undefined;
  const readNearby = ({ extent }: AroundPage) => {
    nearby ??= findTouching(transaction, key, extent);
    return nearby;
  };
  return {
    settledRanges: (range) =>
      page && isWithin(range, page.extent)
        ? readNearby(page).filter(({ from, to }) => from <= range.to && to >= range.from)
        : findTouching(transaction, key, range),
    rowsBeside(range, timestamps) {
      const isPrevious = page?.previous === undefined || timestamps[0] === page.previous;
      if (page?.isVacant && isPrevious && isWithin(range, page.extent)) return [];
      const replaced = page?.replaced ?? [];
      return findRowsBeside(
        transaction,
        key,
        range,
        replaced.length > 0 ? [...timestamps, ...replaced] : timestamps,
      );
    },
    newestRow: (ts) => findNewestRow(transaction, key, ts),
    newestServed: (range) => findNewestServedRow(transaction, key, range),
    newestLive: (range) => (hasLiveFeed ? findNewestLiveRow(transaction, series, range) : undefined),
    endsAbove: (ts) => findEndsAbove(transaction, key, ts),
    get targetStart() {
      return findTargetStart(transaction, key);
    },
    get publication() {
      return readPublication(transaction, key);
    },
    hasOtherPublished: (ts) => hasOtherPublished(transaction, key, indexType, ts),
    servesRunningDay: (page ? page.timing : readStreamTiming(transaction, stream))?.servesRunningDay === 1,
  };
}

function isWithin(range: TimeRange, extent: TimeRange): boolean {
  return extent.from <= range.from && range.to <= extent.to;
}
