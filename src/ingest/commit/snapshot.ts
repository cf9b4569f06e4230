import type { DerivativeTick, ExchangeTick, MarketCap, StreamRecords } from "../../model/records.ts";
import type { SnapshotStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import {
  hasSnapshotRows,
  settleForbidden,
  settleSnapshot,
} from "../../warehouse/coverage/snapshot-coverage.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import type { PendingPages } from "../decode/pending-pages.ts";
import { MAX_CLOCK_SKEW_MICROS } from "../decode/scanned-page.ts";
import { RefreshPeriods } from "./refresh-periods.ts";
import { chooseRecords, type ListedPage } from "./second-records.ts";

/** One page of a snapshot stream, decoded before. */
export interface SnapshotPage {
  readonly stream: SnapshotStream;
  readonly pageId: number;
  /** For exchange ticks: the markets to store; absent: all. */
  readonly markets?: ReadonlySet<string>;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
}

export interface SnapshotCommitResult {
  readonly written: WriteRecordsResult;
  /** Readable records, stored or not. */
  readonly listed: number;
  readonly rejected: number;
  /** The newest plausible timestamp of all records, and of the stored ones. */
  readonly newest: Micros | undefined;
  readonly newestStored: Micros | undefined;
}

/**
 * Stores the records of a page. `SnapshotValidator` decides whether the whole snapshot counts as coverage.
 */
export function commitSnapshot(
  warehouse: WarehouseWriter,
  pages: PendingPages,
  page: SnapshotPage,
): SnapshotCommitResult {
  const { stream } = page;
  const markets = stream === "exchange_ticks" ? page.markets : undefined;
  const { records, seconds, rejects, unknownFields } = pages.get(stream, page.pageId);
  return warehouse.transaction((transaction) => {
    storeRejects(transaction, stream, rejects, page.request);
    countUnknownFields(transaction, stream, unknownFields);
    const isSelected = (record: SnapshotRecord) => markets?.has((record as ExchangeTick).marketId) ?? true;
    const selected = markets ? records.filter(isSelected) : records;
    const { written, rejected } = writeSnapshot(
      transaction,
      stream,
      { records: selected, seconds: seconds.filter(({ record }) => isSelected(record)) },
      page.request,
    );
    const latest = transaction.now + MAX_CLOCK_SKEW_MICROS;
    return {
      written,
      listed: records.length + seconds.length,
      rejected: rejects.length + rejected,
      newest: findNewestUntil(latest, records),
      newestStored: findNewestUntil(latest, selected),
    };
  });
}

type SnapshotRecord = ExchangeTick | MarketCap | DerivativeTick;

/** The cast is safe: a page has only records of its own stream. */
function writeSnapshot<S extends SnapshotStream>(
  transaction: Transaction,
  stream: S,
  listed: ListedPage<SnapshotRecord>,
  request: string,
): { readonly written: WriteRecordsResult; readonly rejected: number } {
  const page = listed as ListedPage<StreamRecords[S]>;
  const { records, rejected } = chooseRecords(transaction, stream, page, request);
  return { written: writeRecords(transaction, stream, records, "rest"), rejected };
}

function findNewestUntil(latest: Micros, records: readonly SnapshotRecord[]): Micros | undefined {
  let newest: Micros | undefined;
  for (const { ts } of records) if (ts <= latest && (newest === undefined || ts > newest)) newest = ts;
  return newest;
}

/** The sum of all pages of one list in a snapshot. */
export interface SnapshotPart {
  /** Distinguishes the lists of a snapshot: the derivative type; empty if there is only one list. */
  readonly part: string;
  /** Readable records. */
  readonly listed: number;
  readonly rejected: number;
  /** The newest plausible timestamp of each page, and of its stored records. */
  readonly timestamps: readonly Micros[];
  readonly storedTimestamps: readonly Micros[];
}

/** All parts of a snapshot, fetched and stored. */
export interface CollectedSnapshot {
  readonly stream: SnapshotStream;
  /** Null: all exchanges. */
  readonly exchangeId: string | null;
  readonly cadence: Micros;
  readonly parts: readonly SnapshotPart[];
  /** When the first part was requested and the last had arrived, by the service's clock; undefined: unknown. */
  readonly askedAt?: Micros;
  readonly answeredAt?: Micros;
}

/** A snapshot that could not be fetched, or only in part. */
export type ForbiddenSnapshot = Pick<CollectedSnapshot, "stream" | "exchangeId" | "cadence">;

/** Records that the present period of a snapshot stream is lost, because the service denies access to it. */
export function commitForbiddenSnapshot(
  warehouse: WarehouseWriter,
  { stream, exchangeId, cadence }: ForbiddenSnapshot,
): void {
  warehouse.transaction((transaction) => {
    const at = Math.floor(transaction.now / cadence) * cadence;
    settleForbidden(transaction, { stream, exchangeId, at, cadence });
  });
}

/**
 * Why a snapshot does not count: most records are unreadable, it has less than half as many as before, or it
 * is empty although it must not be.
 */
export type SnapshotProblem = "unreadable" | "shrunken" | "empty";

/** Current pages of a snapshot are no further apart; an older page shows a market that does not trade. */
const MAX_SPREAD_CADENCES = 2;

/** Decides whether a snapshot counts as coverage, by comparing it with earlier ones. */
export class SnapshotValidator {
  /** The number of records of each part when it was last accepted. */
  readonly #acceptedCounts = new Map<string, number>();
  /** Parts that were too short or empty once: a second such response confirms it. */
  readonly #suspectKeys = new Set<string>();
  readonly #refreshPeriods = new RefreshPeriods();

  /** Settles the snapshot, or returns why it does not count. */
  commit(warehouse: WarehouseWriter, snapshot: CollectedSnapshot): SnapshotProblem | undefined {
    return warehouse.transaction((transaction) => {
      const isEmpty = snapshot.parts.every(({ listed, rejected }) => listed + rejected === 0);
      const problems = isEmpty
        ? [this.#checkEmpty(transaction, snapshot)]
        : snapshot.parts.map((part) => this.#checkPart(snapshot, part));
      const problem = problems.find((each) => each !== undefined);
      if (problem === undefined) settleCollected(transaction, snapshot, this.#refreshPeriods);
      return problem;
    });
  }

  /**
   * All exchanges together are never empty. One exchange may be; if it had rows before, two empty responses
   * are needed.
   */
  #checkEmpty(transaction: Transaction, snapshot: CollectedSnapshot): SnapshotProblem | undefined {
    if (snapshot.exchangeId === null) return "empty";
    return hasSnapshotRows(transaction, snapshot)
      ? this.#reportOnce(partKey(snapshot, "all"), "empty")
      : undefined;
  }

  #checkPart(
    snapshot: CollectedSnapshot,
    { part, listed, rejected, timestamps }: SnapshotPart,
  ): SnapshotProblem | undefined {
    if (rejected > listed || (listed > 0 && timestamps.length === 0)) return "unreadable";
    const key = partKey(snapshot, part);
    const problem =
      listed * 2 < (this.#acceptedCounts.get(key) ?? 0) ? this.#reportOnce(key, "shrunken") : undefined;
    if (problem !== undefined) return problem;
    this.#acceptedCounts.set(key, listed);
    this.#suspectKeys.delete(key);
    this.#suspectKeys.delete(partKey(snapshot, "all"));
    return undefined;
  }

  #reportOnce(key: string, problem: SnapshotProblem): SnapshotProblem | undefined {
    if (this.#suspectKeys.has(key)) return undefined;
    this.#suspectKeys.add(key);
    return problem;
  }
}

function partKey({ stream, exchangeId }: CollectedSnapshot, part: string): string {
  return `${stream} ${part} ${exchangeId ?? ""}`;
}

function settleCollected(
  transaction: Transaction,
  snapshot: CollectedSnapshot,
  refreshPeriods: RefreshPeriods,
): void {
  const { stream, exchangeId, cadence, parts, askedAt, answeredAt } = snapshot;
  // Pages differ in age: the oldest dates the snapshot, so that no page covers a time after it was made.
  // A page far behind the newest is ignored: its market does not trade.
  const timestamps = parts.flatMap((part) => part.timestamps);
  const newest = Math.max(...timestamps);
  const current = timestamps.filter((ts) => newest - ts <= MAX_SPREAD_CADENCES * cadence);
  const snapshotTs = timestamps.length === 0 ? transaction.now : Math.min(...current);
  const at = Math.floor(snapshotTs / cadence) * cadence;
  const isInPeriod = (ts: Micros) => ts >= at && ts < at + cadence;
  const isEmpty = !parts.some(({ storedTimestamps }) => storedTimestamps.some(isInPeriod));
  const key = partKey(snapshot, "all");
  const { from, to } = isEmpty
    ? { from: at, to: at + cadence }
    : refreshPeriods.observe({ key, stream, ts: snapshotTs, askedAt, answeredAt, cadence });
  settleSnapshot(transaction, { stream, exchangeId, at: from, to, cadence, isEmpty });
}
