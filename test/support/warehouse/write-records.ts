import type { StreamRecords } from "../../../src/model/records.ts";
import type { RowStream } from "../../../src/model/streams.ts";
import type { Micros } from "../../../src/model/time.ts";
import { planRecords, type RecordSource } from "../../../src/warehouse/rows/row-plan.ts";
import { type WriteRecordsResult, writeRows } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";

/** Reads, decides and writes at once. */
export function writeRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  source: RecordSource,
  tolerance: Micros = 0,
): WriteRecordsResult {
  return writeRows(transaction, planRecords(transaction, stream, records, source, tolerance));
}
