import type { IndexTick, StreamRecords } from "../../../src/model/records.ts";
import type { RowStream } from "../../../src/model/streams.ts";
import type { Micros } from "../../../src/model/time.ts";
import { planRecords, type RecordSource } from "../../../src/warehouse/rows/row-plan.ts";
import { type WriteRecordsResult, writeRows } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";

/** Reads, decides and writes at once. */
export function writeRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  source: RecordSource = "rest",
  tolerance: Micros = 0,
): WriteRecordsResult {
  return writeRows(transaction, planRecords(transaction, stream, records, source, tolerance));
}

export function writeTicks(
  transaction: Transaction,
  ticks: readonly IndexTick[],
  source?: RecordSource,
  tolerance?: Micros,
): WriteRecordsResult {
  return writeRecords(transaction, "index_ticks", ticks, source, tolerance);
}

/** Writes them in a transaction of their own. */
export function storeTicks(
  warehouse: WarehouseWriter,
  ticks: readonly IndexTick[],
  source?: RecordSource,
  tolerance?: Micros,
): WriteRecordsResult {
  return warehouse.transaction((transaction) => writeTicks(transaction, ticks, source, tolerance));
}
