import type { DailyBar, IndexTick, Reject, StreamRecords } from "../../model/records.ts";
import type { HistoryStream, RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import { chooseRecord, isStored, noteSecond, SECOND_RECORD } from "../../warehouse/rows/second-records.ts";
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
  /** The others, for `rejects`. */
  readonly seconds: readonly Reject[];
}

/** Chooses one record of each moment that a page lists several times. */
export function chooseRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  { records, seconds }: ListedPage<StreamRecords[S]>,
): ChosenRecords<StreamRecords[S]> {
  if (seconds.length === 0) return { records, seconds: [] };
  const chosen = new Map<StreamRecords[S], StreamRecords[S]>();
  const rejects: Reject[] = [];
  for (const [first, others] of Map.groupBy(seconds, (second) => second.first)) {
    const firstListed = { record: first, raw: others[0]?.firstRaw ?? "" };
    const kept = chooseRecord(transaction, stream, [firstListed, ...others]);
    chosen.set(first, { ...kept.record, quality: noteSecond(kept.record.quality) });
    rejects.push(...[firstListed, ...others].filter((each) => each !== kept).map(toReject));
  }
  return { records: records.map((record) => chosen.get(record) ?? record), seconds: rejects };
}

/** What shows whether a page continues the moment with which the page before ended. */
export interface ContinuingPage {
  /** The timestamp of the first record. */
  readonly newest: Micros | undefined;
  /** The number of records of other series. */
  readonly foreign: number;
  readonly first: () => DailyBar | IndexTick | undefined;
  readonly firstRaw: string;
  readonly seconds: readonly SecondRecord<DailyBar | IndexTick>[];
}

/** A moment that a page continues, and its second records, for `rejects`. */
export interface ContinuedMoment {
  readonly ts: Micros;
  readonly seconds: readonly Reject[];
}

/**
 * If the page before ended with another record of the moment with which this page continues after the cursor, what this
 * page has of that moment are second records.
 */
export function findContinued(
  transaction: Transaction,
  stream: HistoryStream,
  { gap, provenFrom, anchor }: Pick<PageAnswer, "gap" | "provenFrom" | "anchor">,
  page: ContinuingPage,
): ContinuedMoment | undefined {
  const ts = provenFrom - 1;
  const isContinued = anchor === undefined && provenFrom < gap.to && page.foreign === 0;
  if (!isContinued || page.newest !== ts) return undefined;
  const first = page.first();
  const isOther = (record: DailyBar | IndexTick) => isStored(transaction, stream, record as never) === false;
  if (first?.ts !== ts || !isOther(first)) return undefined;
  const others = page.seconds.filter(({ record }) => record.ts === ts && isOther(record));
  return { ts, seconds: [{ raw: page.firstRaw }, ...others].map(toReject) };
}

function toReject({ raw }: { readonly raw: string }): Reject {
  return { reason: SECOND_RECORD, raw };
}
