import type { DailyBar, IndexTick, StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type Series, streamTable } from "../../model/streams.ts";
import { tickAt } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import { findProofAt, hasRowsInRange, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import {
  type RecordSource,
  type WriteRecordsResult,
  writeRecords,
  writeTickColumns,
} from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { PendingPages } from "../decode/pending-pages.ts";
import type { SecondRecord } from "../decode/second-records.ts";
import { type ContinuingPage, chooseRecords, rejectContinued } from "./second-records.ts";

export type HistoryPage = ReturnType<PendingPages["get"]>;

/** The cast is safe: a page has only records of its own stream. */
export function recordsOf({ records }: HistoryPage): (DailyBar & IndexTick)[] {
  return records as (DailyBar & IndexTick)[];
}

interface PageToWrite {
  readonly series: Series;
  readonly position: Pick<PageAnswer, "gap" | "provenFrom" | "anchor">;
  readonly request: string;
}

interface WritePageResult {
  readonly written: WriteRecordsResult;
  /** Second records of a moment, unless they were known before. */
  readonly seconds: number;
}

export function secondRecordsOf({ seconds }: HistoryPage): readonly SecondRecord<DailyBar & IndexTick>[] {
  return seconds as readonly SecondRecord<DailyBar & IndexTick>[];
}

/** Writes the records of a page, each where it may be written. */
export function writePage(
  transaction: Transaction,
  key: SeriesKey,
  { series, position, request }: PageToWrite,
  decoded: HistoryPage,
  source: RecordSource,
): WritePageResult {
  const { columns } = decoded;
  const { stream } = series;
  const continued = rejectContinued(transaction, key, position, toContinuing(decoded), request);
  if (columns && !continued) return { written: writeTickColumns(transaction, columns, source), seconds: 0 };
  const isWritable = ({ ts }: { readonly ts: Micros }) => ts !== continued?.ts;
  const { own, foreign } = splitForeign(recordsOf(decoded).filter(isWritable), series);
  const listed = new Set(own);
  const ownSeconds = secondRecordsOf(decoded).filter(({ first }) => listed.has(first));
  const chosen = chooseRecords(transaction, stream, { records: own, seconds: ownSeconds }, request);
  const written = writeRecords(transaction, stream, chosen.records, source);
  if (foreign.length > 0) storeForeignRecords(transaction, stream, foreign);
  return { written, seconds: chosen.rejected + (continued?.rejected ?? 0) };
}

function toContinuing(decoded: HistoryPage): ContinuingPage {
  const { plausibleTimestamps, foreign, firstRaw, columns } = decoded;
  const first = () => (columns ? tickAt(columns, 0) : recordsOf(decoded)[0]);
  return { newest: plausibleTimestamps[0], foreign, first, firstRaw, seconds: secondRecordsOf(decoded) };
}

/** Separates the records of the requested series from those that the service should not have sent. */
function splitForeign<S extends HistoryStream>(
  records: readonly StreamRecords[S][],
  { indexType, indexId }: Series,
): { readonly own: readonly StreamRecords[S][]; readonly foreign: readonly StreamRecords[S][] } {
  const isOwn = (record: StreamRecords[S]) => record.indexId === indexId && record.indexType === indexType;
  return { own: records.filter(isOwn), foreign: records.filter((record) => !isOwn(record)) };
}

/**
 * Stores records of other series, as unconfirmed as a live tick, and only where their own series has neither a row nor
 * coverage: a page that ignored the filter must not replace what a page of that series proved.
 */
function storeForeignRecords<S extends HistoryStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
): void {
  const { step } = streamTable[stream];
  const isFree = ({ indexType, indexId, ts }: StreamRecords[S]) => {
    const key = { stream, series: transaction.dictionary.getSeriesKey(indexType, indexId) };
    return (
      findProofAt(transaction, key, ts) === undefined &&
      !hasRowsInRange(transaction, key, { from: ts, to: ts + step })
    );
  };
  writeRecords(transaction, stream, records.filter(isFree), "live");
}
