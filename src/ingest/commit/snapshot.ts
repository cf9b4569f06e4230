import type { DerivativeTick, ExchangeTick, MarketCap } from "../../model/records.ts";
import type { SnapshotStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { forbidPeriod, type Snapshot, takeSnapshot } from "../../rule/snapshot.ts";
import {
  planSnapshotChanges,
  readSnapshotState,
  readStoredSnapshots,
  storeSnapshotState,
  writeSnapshotChanges,
} from "../../warehouse/coverage/snapshot-coverage.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { planRecords } from "../../warehouse/rows/row-plan.ts";
import { writeRows } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { MAX_CLOCK_SKEW_MICROS, type Page } from "../decode/read-page.ts";
import { chooseRecords } from "./write-page.ts";

export interface SnapshotList {
  readonly stream: SnapshotStream;
  /** For exchange ticks: the markets to store; absent: all. */
  readonly markets?: ReadonlySet<string>;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
}

/** Stores the records of a page. `takeSnapshot` decides whether the whole snapshot counts as coverage. */
export function commitSnapshot(
  warehouse: WarehouseWriter,
  { records, duplicates, rejects, unknownFields }: Page<SnapshotStream>,
  { stream, request, ...list }: SnapshotList,
) {
  const markets = stream === "exchange_ticks" ? list.markets : undefined;
  const isSelected = (record: SnapshotRecord) => markets?.has((record as ExchangeTick).marketId) ?? true;
  const selected = markets ? records.filter(isSelected) : records;
  const ownDuplicates = duplicates.filter(({ record }) => isSelected(record));
  return warehouse.transaction((transaction) => {
    const chosen = chooseRecords(transaction, stream, { records: selected, duplicates: ownDuplicates });
    const plan = planRecords(transaction, stream, chosen.records, "rest");
    const written = writeRows(transaction, plan);
    const rejected = storeRejects(transaction, stream, chosen.duplicates, request);
    storeRejects(transaction, stream, rejects, request);
    countUnknownFields(transaction, stream, unknownFields);
    const latest = transaction.now + MAX_CLOCK_SKEW_MICROS;
    return {
      written,
      /** Readable records, stored or not. */
      listed: records.length + duplicates.length,
      rejected: rejects.length + rejected,
      /** The newest plausible timestamp of all records, and of the stored ones. */
      newest: findNewestUntil(latest, records),
      newestStored: findNewestUntil(latest, selected),
    };
  });
}

type SnapshotRecord = ExchangeTick | MarketCap | DerivativeTick;

export function findNewestUntil(
  latest: Micros,
  ...lists: readonly (readonly { readonly ts: Micros }[])[]
): Micros | undefined {
  let newest = Number.NEGATIVE_INFINITY;
  for (const records of lists) for (const { ts } of records) if (ts <= latest && ts > newest) newest = ts;
  return newest === Number.NEGATIVE_INFINITY ? undefined : newest;
}

/** A snapshot that could not be fetched, or only in part. */
export type ForbiddenSnapshot = Pick<Snapshot, "stream" | "exchangeId" | "cadence">;

/** Records that the present period of a snapshot stream is lost, because the service denies access to it. */
export function commitForbiddenSnapshot(transaction: Transaction, snapshot: ForbiddenSnapshot): void {
  const changes = forbidPeriod(transaction.now, snapshot.cadence);
  writeSnapshotChanges(transaction, planSnapshotChanges(transaction, snapshot, changes));
}

/** Settles the snapshot, all parts of which are stored, or returns why it does not count. */
export function commitSnapshotCoverage(transaction: Transaction, snapshot: Snapshot) {
  const stored = readStoredSnapshots(transaction, snapshot);
  const before = readSnapshotState(transaction, snapshot);
  const { problem, changes, state } = takeSnapshot(snapshot, before, stored, transaction.now);
  const plan = planSnapshotChanges(transaction, snapshot, changes);
  writeSnapshotChanges(transaction, plan);
  storeSnapshotState(transaction, snapshot, state);
  return problem;
}
