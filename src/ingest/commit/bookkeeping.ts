import type { HistoryStream, Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type LineHoles, writeOff } from "../../warehouse/coverage/gaps.ts";
import { type LedgerLine, retract } from "../../warehouse/coverage/ledger.ts";
import { reopenUnserved, settleUnserved } from "../../warehouse/coverage/not-found.ts";
import { type ContractsDenial, noteNoContracts, noteReread } from "../../warehouse/coverage/rechecks.ts";
import { noteClockSkew, noteHindrance } from "../../warehouse/coverage/targets.ts";
import { type JobRun, noteJobRun } from "../../warehouse/read/job-runs.ts";
import { noteSize } from "../../warehouse/read/size-history.ts";
import { type PrunedStream, prune } from "../../warehouse/rows/retention.ts";
import { noteError, noteMissingScopes } from "../../warehouse/rows/stream-stats.ts";
import { type Checkpoint, truncateWal } from "../../warehouse/sqlite/wal.ts";
import type { Warehouse } from "../../warehouse/writer.ts";

/** Enters as lost what the service's window has left behind. */
export function commitLosses(warehouse: Warehouse, lines: readonly LineHoles[]): void {
  warehouse.transaction((transaction) => {
    for (const line of lines) writeOff(transaction, line);
  });
}

/** The service answers 404 for the index: it has no records of it. */
export function commitUnserved(
  warehouse: Warehouse,
  unserved: { line: LedgerLine & { stream: HistoryStream }; range: TimeRange },
): void {
  warehouse.transaction((transaction) => settleUnserved(transaction, unserved.line, unserved.range));
}

/** The service has records of an index that it answered 404 for before: all of it is asked again. */
export function commitServedAgain(warehouse: Warehouse, line: LedgerLine): void {
  warehouse.transaction((transaction) => reopenUnserved(transaction, line));
}

export function commitHindrance(
  warehouse: Warehouse,
  { lines, reason }: { lines: readonly LedgerLine[]; reason: string | null },
): void {
  warehouse.transaction((transaction) => {
    for (const line of lines) noteHindrance(transaction, line, reason);
  });
}

export function commitReread(warehouse: Warehouse, { line, day }: { line: LedgerLine; day: string }): void {
  warehouse.transaction((transaction) => noteReread(transaction, line, day));
}

/** The service says that an exchange has no contracts of a type. */
export function commitNoContracts(warehouse: Warehouse, denial: ContractsDenial): void {
  warehouse.transaction((transaction) => noteNoContracts(transaction, denial));
}

export interface StreamNote {
  readonly stream: Stream;
  /** In one line, without secrets; null: it works. */
  readonly error: string | null;
  readonly missingScopes: readonly string[];
}

/** How the streams fared, for `status`. */
export function commitStreamNotes(warehouse: Warehouse, notes: readonly StreamNote[]): void {
  warehouse.transaction((transaction) => {
    for (const { stream, error, missingScopes } of notes) {
      noteError(transaction, stream, error);
      noteMissingScopes(transaction, stream, missingScopes);
    }
  });
}

/** The service's clock minus this machine's. */
export function commitClockSkew(warehouse: Warehouse, skew: Micros): void {
  warehouse.transaction((transaction) => noteClockSkew(transaction, skew));
}

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
