import type { DailyBar, IndexTick, Reject, StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type Series, streamTable } from "../../model/streams.ts";
import { type TickColumns, tickAt, toTicks } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import { findProofAt, hasRowsInRange, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { storeRejects } from "../../warehouse/rows/rejects.ts";
import {
  type RecordSource,
  type WriteRecordsResult,
  writeRecords,
  writeTickColumns,
} from "../../warehouse/rows/row-writer.ts";
import { noteSecondInRow } from "../../warehouse/rows/second-records.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Page } from "../decode/read-page.ts";
import type { SecondRecord } from "../decode/second-records.ts";
import { type ContinuingPage, chooseRecords, findContinued } from "./second-records.ts";

/** The cast is safe: a page has only records of its own stream. */
export function recordsOf({ columns, records }: Page): (DailyBar & IndexTick)[] {
  return (columns ? toTicks(columns) : records) as (DailyBar & IndexTick)[];
}

export function secondRecordsOf({ seconds }: Page): readonly SecondRecord<DailyBar & IndexTick>[] {
  return seconds as readonly SecondRecord<DailyBar & IndexTick>[];
}

/** What of a page is to be written, each record where it may be written. */
export interface PageRows {
  /** All of them, if nothing is unusual. */
  readonly columns: TickColumns | undefined;
  readonly own: readonly StreamRecords[HistoryStream][];
  readonly foreign: readonly StreamRecords[HistoryStream][];
  /** Second records of a moment. */
  readonly seconds: readonly Reject[];
  /** The moment of a stored row of which the page has second records. */
  readonly continuedTs: Micros | undefined;
}

export function readPageRows(
  transaction: Transaction,
  { stream }: SeriesKey,
  { series, position }: { series: Series; position: Pick<PageAnswer, "gap" | "provenFrom" | "anchor"> },
  decoded: Page,
): PageRows {
  const { columns } = decoded;
  const continued = findContinued(transaction, stream, position, toContinuing(decoded));
  const continuedTs = continued?.ts;
  if (columns && !continued) return { columns, own: [], foreign: [], seconds: [], continuedTs };
  const isWritable = ({ ts }: { readonly ts: Micros }) => ts !== continuedTs;
  const { own, foreign } = splitForeign(recordsOf(decoded).filter(isWritable), series);
  const listed = new Set(own);
  const ownSeconds = secondRecordsOf(decoded).filter(({ first }) => listed.has(first));
  const { records, seconds } = chooseRecords(transaction, stream, { records: own, seconds: ownSeconds });
  return {
    columns: undefined,
    own: records,
    foreign: selectFree(transaction, stream, foreign),
    seconds: [...(continued?.seconds ?? []), ...seconds],
    continuedTs,
  };
}

interface WritePageResult {
  readonly written: WriteRecordsResult;
  /** Second records of a moment, unless they were known before. */
  readonly seconds: number;
}

export function writePageRows(
  transaction: Transaction,
  { stream, series }: SeriesKey,
  { columns, own, foreign, seconds, continuedTs }: PageRows,
  source: RecordSource,
  request: string,
): WritePageResult {
  transaction.markWritten(stream, series);
  if (columns) return { written: writeTickColumns(transaction, columns, source), seconds: 0 };
  if (continuedTs !== undefined) noteSecondInRow(transaction, stream, series, continuedTs);
  const written = writeRecords(transaction, stream, own, source);
  // As unconfirmed as a live tick.
  if (foreign.length > 0) writeRecords(transaction, stream, foreign, "live");
  return { written, seconds: storeRejects(transaction, stream, seconds, request) };
}

function toContinuing(decoded: Page): ContinuingPage {
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
 * The records of other series where their own series has neither a row nor coverage: a page that ignored the filter must
 * not replace what a page of that series proved.
 */
function selectFree<S extends HistoryStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
): readonly StreamRecords[S][] {
  const { step } = streamTable[stream];
  return records.filter(({ indexType, indexId, ts }) => {
    const key = { stream, series: transaction.dictionary.getSeriesKey(indexType, indexId) };
    return (
      findProofAt(transaction, key, ts) === undefined &&
      !hasRowsInRange(transaction, key, { from: ts, to: ts + step })
    );
  });
}
