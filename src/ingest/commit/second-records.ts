import type { DailyBar, IndexTick, StreamRecords } from "../../model/records.ts";
import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import type { SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { storeRejects } from "../../warehouse/rows/rejects.ts";
import {
  chooseRecord,
  isStored,
  noteSecond,
  noteSecondInRow,
  SECOND_RECORD,
} from "../../warehouse/rows/second-records.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { SecondRecord } from "../decode/second-records.ts";

/** Records of a page, and what it lists beside them of the same moments. */
export interface ListedPage<R> {
  readonly records: readonly R[];
  readonly seconds: readonly SecondRecord<R>[];
}

/** The records of a page to store, one of each moment. */
interface ChosenRecords<R> {
  readonly records: readonly R[];
  /** The second records that were not known before: they are in `rejects` now. */
  readonly rejected: number;
}

/** Chooses one record of each moment that a page lists several times, and stores the others in `rejects`. */
export function chooseRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  { records, seconds }: ListedPage<StreamRecords[S]>,
  request: string,
): ChosenRecords<StreamRecords[S]> {
  if (seconds.length === 0) return { records, rejected: 0 };
  const chosen = new Map<StreamRecords[S], StreamRecords[S]>();
  let rejected = 0;
  for (const [first, others] of Map.groupBy(seconds, (second) => second.first)) {
    const firstListed = { record: first, raw: others[0]?.firstRaw ?? "" };
    const kept = chooseRecord(transaction, stream, [firstListed, ...others]);
    chosen.set(first, { ...kept.record, quality: noteSecond(kept.record.quality) });
    const rejects = [firstListed, ...others].filter((each) => each !== kept);
    rejected += storeSeconds(transaction, stream, rejects, request);
  }
  return { records: records.map((record) => chosen.get(record) ?? record), rejected };
}

/** What shows whether a page continues the moment with which the page before ended. */
export interface ContinuingPage {
  /** The timestamp of the first record. */
  readonly newest: Micros | undefined;
  /** The number of records of other series. */
  readonly foreign: number;
  readonly first: () => DailyBar | IndexTick | undefined;
  readonly firstRaw: () => string;
  readonly seconds: readonly SecondRecord<DailyBar | IndexTick>[];
}

/**
 * If the page before ended with another record of the moment with which this page continues after the cursor, what this
 * page has of that moment are second records: stores them in `rejects`. Returns that moment; undefined: it is not so.
 */
export function rejectContinued(
  transaction: Transaction,
  { stream, series }: SeriesKey,
  { gap, provenFrom, anchor }: Pick<PageAnswer, "gap" | "provenFrom" | "anchor">,
  page: ContinuingPage,
  request: string,
): { readonly ts: Micros; readonly rejected: number } | undefined {
  const ts = provenFrom - 1;
  const isContinued = anchor === undefined && provenFrom < gap.to && page.foreign === 0;
  if (!isContinued || page.newest !== ts) return undefined;
  const first = page.first();
  const isOther = (record: DailyBar | IndexTick) => isStored(transaction, stream, record as never) === false;
  if (first?.ts !== ts || !isOther(first)) return undefined;
  const others = page.seconds.filter(({ record }) => record.ts === ts && isOther(record));
  noteSecondInRow(transaction, stream, series, ts);
  const rejects = [{ raw: page.firstRaw() }, ...others];
  return { ts, rejected: storeSeconds(transaction, stream, rejects, request) };
}

function storeSeconds(
  transaction: Transaction,
  stream: RowStream,
  records: readonly { readonly raw: string }[],
  request: string,
): number {
  const rejects = records.map(({ raw }) => ({ reason: SECOND_RECORD, raw }));
  return storeRejects(transaction, stream, rejects, request);
}
