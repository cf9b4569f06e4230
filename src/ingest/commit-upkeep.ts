import type { Micros } from "../model/instant.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type JobRun, noteJobRun } from "../warehouse/job-runs.ts";
import { type LedgerLine, retract } from "../warehouse/ledger.ts";
import { type PrunedStream, prune } from "../warehouse/retention.ts";
import { noteSize } from "../warehouse/size-history.ts";
import { type Checkpoint, truncateWal } from "../warehouse/wal.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";

/** One bite of what is older than the settings keep; to be called until `isDone`. */
export function pruneBite(
  warehouse: Warehouse,
  { stream, before }: { stream: PrunedStream; before: Micros },
): { deleted: number; isDone: boolean } {
  return warehouse.transaction((transaction) => prune(transaction, stream, before));
}

/** What an audit found and could not put right by itself is open again. */
export function commitRetraction(
  warehouse: Warehouse,
  { line, range }: { line: LedgerLine; range: TimeRange },
): void {
  warehouse.transaction((transaction) => retract(transaction, line, range));
}

export function commitJobRun(warehouse: Warehouse, run: JobRun): void {
  warehouse.transaction((transaction) => noteJobRun(transaction, run));
}

export function commitSize(warehouse: Warehouse, bytes: number): void {
  warehouse.transaction((transaction) => noteSize(transaction, bytes));
}

/** Rows looked at in each index when its statistics are renewed: exact ones of a large table would take minutes. */
const ANALYSED_ROWS = 400;

/** Renews the planner's statistics where they have gone stale, and moves the WAL into the file. */
export function tidy({ connection }: Warehouse): Checkpoint {
  connection.database.pragma(`analysis_limit = ${ANALYSED_ROWS}`);
  connection.database.pragma("optimize");
  return truncateWal(connection);
}
