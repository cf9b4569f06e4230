import { streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { StoredSeries } from "../../rule/answer.ts";
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
    settledRanges: (range) => findTouching(transaction, key, range),
    rowsBeside: (range, timestamps) =>
      findRowsBeside(
        transaction,
        key,
        range,
        replaced.length > 0 ? [...timestamps, ...replaced] : timestamps,
      ),
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
    get servesRunningDay() {
      return servesRunningDay(transaction, stream);
    },
  };
}
