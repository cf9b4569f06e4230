import { hasHistory, type RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type ChangedRangeRow, changedRanges } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import { and, gt, lte } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";
import { readWarehouseState } from "../tables/warehouse-state.ts";

/*
 * The shared warehouse finds growth of coverage by comparing two ledgers. What that comparison cannot show is recorded
 * here, in the transaction that does it: rows that change inside a settled range, and coverage that is taken back and may
 * return with other rows. A record says where to look again, not what happened, so order and repetition do not matter.
 */

/** A reader that is further behind has to compare everything. */
const MAX_CHANGES = 500_000;
const PRUNE_INTERVAL = 10_000;

/** Records that rows of the range were replaced or deleted, wherever they are. */
export function recordRowChange(
  transaction: Transaction,
  stream: RowStream,
  key: number,
  range: TimeRange,
): void {
  record(transaction, stream, 0, key, range);
}

/** Records that coverage of the range was taken back, or became `lost`. */
export function recordLedgerChange(
  transaction: Transaction,
  stream: RowStream,
  series: number,
  range: TimeRange,
): void {
  record(transaction, stream, 1, series, range);
}

function record(
  transaction: Transaction,
  stream: RowStream,
  isLedger: 0 | 1,
  key: number,
  { from, to }: TimeRange,
): void {
  const { lastInsertRowid } = transaction
    .statement("REPLACE INTO changed_ranges (stream, is_ledger, key, from_ts, to_ts) VALUES (?, ?, ?, ?, ?)")
    .run([stream, isLedger, key, from, to]);
  const seq = Number(lastInsertRowid);
  if (seq % PRUNE_INTERVAL === 0)
    transaction.statement("DELETE FROM changed_ranges WHERE seq <= ?").run([seq - MAX_CHANGES]);
}

/**
 * Whether rows that were inserted need a record. Growth of coverage shows them by itself where nothing was settled. The
 * ledger of a snapshot stream has other keys than its rows: there the caller leaves out rows above the high-water mark.
 */
function needsRecord(
  transaction: Transaction,
  stream: RowStream,
  key: number,
  { from, to }: TimeRange,
): boolean {
  if (!hasHistory(stream)) return true;
  const sql =
    "SELECT to_ts > ? FROM settled_ranges WHERE stream = ? AND series = ? AND from_ts < ? ORDER BY from_ts DESC LIMIT 1";
  return transaction.statement(sql).pluck().get([from, stream, key, to]) === 1;
}

/** The hull of the rows of one series that a write has changed. */
export class ChangedRows {
  #from: Micros = Number.POSITIVE_INFINITY;
  #to: Micros = Number.NEGATIVE_INFINITY;
  #hasReplaced = false;

  insert(first: Micros, last: Micros = first): void {
    if (first < this.#from) this.#from = first;
    if (last >= this.#to) this.#to = last + 1;
  }

  /** A row was replaced or deleted: the shared warehouse may have it even where nothing is settled. */
  replace(ts: Micros): void {
    this.insert(ts);
    this.#hasReplaced = true;
  }

  /** Records the hull, if there is one, and begins anew. */
  record(transaction: Transaction, stream: RowStream, key: number): void {
    const range = { from: this.#from, to: this.#to };
    if (range.from >= range.to) return;
    if (this.#hasReplaced || needsRecord(transaction, stream, key, range))
      recordRowChange(transaction, stream, key, range);
    this.clear();
  }

  clear(): void {
    this.#from = Number.POSITIVE_INFINITY;
    this.#to = Number.NEGATIVE_INFINITY;
    this.#hasReplaced = false;
  }
}

export interface ChangePosition {
  /** Which sequence: that of this file. */
  readonly id: number;
  /** The last change. */
  readonly seq: number;
  /** Older changes may be deleted: a reader that is further behind has missed some. */
  readonly firstSeq: number;
}

export function readChangePosition(connection: Connection): ChangePosition {
  const { changesId: id } = readWarehouseState(connection);
  const seq = connection.value<number>(
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changed_ranges'), 0)",
  );
  return { id, seq, firstSeq: Math.max(0, seq - MAX_CHANGES) };
}

/** The changes after `after` up to `until`, oldest first. */
export function readChanges(
  connection: Connection,
  { after, until, limit }: { readonly after: number; readonly until: number; readonly limit: number },
): ChangedRangeRow[] {
  const { seq } = changedRanges;
  const isNew = and(gt(seq, after), lte(seq, until));
  return connection.orm.select().from(changedRanges).where(isNew).orderBy(seq).limit(limit).all();
}

/** Whether a change of the range was recorded after `seq`. */
export function hasChangedSince(
  transaction: Transaction,
  { stream, series }: { readonly stream: RowStream; readonly series: number },
  { from, to }: TimeRange,
  seq: number,
): boolean {
  const sql = `SELECT 1 FROM changed_ranges
    WHERE stream = ? AND is_ledger IN (0, 1) AND key = ? AND from_ts < ? AND to_ts > ? AND seq > ? LIMIT 1`;
  return transaction.statement(sql).get([stream, series, to, from, seq]) !== undefined;
}

/** Gives the sequence another name, so that every reader compares everything: the file is a copy of another. */
export function renameChanges(file: Pick<Connection, "statement">): void {
  file.statement("UPDATE warehouse_state SET changes_id = abs(random() % 9007199254740991)").run([]);
}
