import type { Micros } from "../model/instant.ts";
import type { Stream, WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type LineHoles, writeOff } from "../warehouse/holes.ts";
import type { LedgerLine } from "../warehouse/ledger.ts";
import { type ContractsDenial, noteNoContracts, noteReread } from "../warehouse/rereads.ts";
import { noteError, noteMissingScopes } from "../warehouse/stream-state.ts";
import { reopenUnserved, settleUnserved } from "../warehouse/unserved.ts";
import { noteClockSkew, noteHindrance } from "../warehouse/wanted.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";

/** Enters as lost what the service's window has left behind. */
export function commitLosses(warehouse: Warehouse, lines: readonly LineHoles[]): void {
  warehouse.transaction((transaction) => {
    for (const line of lines) writeOff(transaction, line);
  });
}

/** The service answers 404 for the index: it has no records of it. */
export function commitUnserved(
  warehouse: Warehouse,
  unserved: { line: LedgerLine & { stream: WalkedStream }; range: TimeRange },
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
