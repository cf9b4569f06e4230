import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type Series, streamTable } from "../../model/streams.ts";
import { findProofAt, hasRowsInRange } from "../../warehouse/coverage/ledger.ts";
import { writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

/** Separates the records of the requested series from those that the service should not have sent. */
export function splitForeign<S extends HistoryStream>(
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
export function storeForeignRecords<S extends HistoryStream>(
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
