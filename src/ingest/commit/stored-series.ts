import { streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Publication, StoredSeries } from "../../rule/answer.ts";
import {
  findEndsAbove,
  findTargetStart,
  findTouching,
  type SeriesKey,
} from "../../warehouse/coverage/ledger.ts";
import {
  hasOtherPublished,
  readPublication,
  servesRunningDay,
} from "../../warehouse/coverage/publication.ts";
import { findNewestLiveRow, findNewestRow, findNewestServedRow } from "../../warehouse/rows/row-queries.ts";
import { findRowsBeside } from "../../warehouse/rows/withdraw-rows.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

/** What the warehouse has of a series, without the previews that the answer replaces. Read where the rule asks for it. */
export function readStoredSeries(
  transaction: Transaction,
  key: SeriesKey,
  indexType: string,
  replaced: readonly Micros[] = [],
): StoredSeries {
  const { stream, series } = key;
  const hasLiveFeed = streamTable[stream].event !== null;
  return {
    settledRanges: (range: TimeRange) => findTouching(transaction, key, range),
    rowsBeside: (range: TimeRange, timestamps: readonly Micros[]) =>
      findRowsBeside(
        transaction,
        key,
        range,
        replaced.length > 0 ? [...timestamps, ...replaced] : timestamps,
      ),
    newestRow: (ts: Micros) => findNewestRow(transaction, key, ts),
    newestServed: (range: TimeRange) => findNewestServedRow(transaction, key, range),
    newestLive: (range: TimeRange) =>
      hasLiveFeed ? findNewestLiveRow(transaction, series, range) : undefined,
    endsAbove: (ts: Micros) => findEndsAbove(transaction, key, ts),
    get targetStart(): Micros | undefined {
      return findTargetStart(transaction, key);
    },
    get publication(): Publication | undefined {
      return readPublication(transaction, key);
    },
    hasOtherPublished: (ts: Micros) => hasOtherPublished(transaction, key, indexType, ts),
    get servesRunningDay(): boolean {
      return servesRunningDay(transaction, stream);
    },
  };
}
