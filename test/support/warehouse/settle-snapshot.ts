import type { SnapshotStream } from "../../../src/model/streams.ts";
import type { Micros } from "../../../src/model/time.ts";
import { settlePeriod } from "../../../src/rule/snapshot.ts";
import {
  planSnapshotChanges,
  readStoredSnapshots,
  writeSnapshotChanges,
} from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";

interface TestSnapshot {
  readonly stream: SnapshotStream;
  readonly exchangeId: string | null;
  readonly at: Micros;
  /** Default: one cadence after `at`. */
  readonly to?: Micros;
  readonly cadence: Micros;
  readonly isEmpty?: boolean;
}

/** Settles `[at, to)` as a snapshot does that counts. */
export function settleSnapshot(transaction: Transaction, snapshot: TestSnapshot): void {
  const { at, cadence, to = at + cadence, isEmpty = false } = snapshot;
  const stored = readStoredSnapshots(transaction, snapshot);
  const changes = settlePeriod({ from: at, to }, !isEmpty, stored);
  writeSnapshotChanges(transaction, planSnapshotChanges(transaction, snapshot, changes));
}
