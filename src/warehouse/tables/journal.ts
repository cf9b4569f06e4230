import type { RowStream } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { readWarehouseState } from "./warehouse-state.ts";

/*
 * The journal: every range whose rows or coverage a transaction has changed, entered in that transaction. A reader (the shared
 * warehouse, an export, an open page, `serve`) knows up to which entry it has looked. An entry says where to look again, not what
 * happened, so order and repetition do not matter, and a range that changes again may replace its entry.
 */

/** `rows`: rows were written or deleted, or coverage has grown; the key is that of the rows. `ledger`: coverage was taken back or
 * lost, or it is that of a snapshot stream; the key is that of the ledger. */
export type ChangeKind = "rows" | "ledger";

export interface Change extends TimeRange {
  readonly stream: RowStream;
  readonly kind: ChangeKind;
  readonly key: number;
}

const HOUR = 3600 * MICROS_PER_SECOND;
/** Some weeks of 1,500 series, 15 MB. A reader that is further behind has to compare everything. */
const MAX_ENTRIES = 500_000;
const PRUNED_AT_ONCE = 50_000;

interface Entry extends TimeRange {
  readonly seq: number;
}

/** What open transactions have changed, and where the entries of their keys are. Owned by the writer of the file. */
export class Journal {
  readonly #connection: Connection;
  readonly #changes = new Map<string, { change: Omit<Change, "from" | "to">; ranges: TimeRange[] }>();
  /** The newest entry of each key. */
  readonly #newest = new Map<string, Entry>();
  #last: { seq: number; count: number } | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  add(stream: RowStream, kind: ChangeKind, key: number, { from, to }: TimeRange): void {
    if (from >= to) return;
    const name = `${stream} ${kind} ${key}`;
    const known = this.#changes.get(name);
    if (!known) {
      this.#changes.set(name, { change: { stream, kind, key }, ranges: [{ from, to }] });
      return;
    }
    const last = known.ranges.at(-1) as TimeRange;
    // Rows of one page or one poll follow one another; far ranges stay apart, so that nobody reads what lies between.
    if (from <= last.to + HOUR && to >= last.from - HOUR)
      known.ranges[known.ranges.length - 1] = { from: Math.min(from, last.from), to: Math.max(to, last.to) };
    else known.ranges.push({ from, to });
  }

  /** Enters what was added. Call it last in the database's transaction; returns the changes. */
  write(): readonly Change[] {
    if (this.#changes.size === 0) return [];
    const changes: Change[] = [];
    for (const [name, { change, ranges }] of this.#changes)
      for (const range of ranges) {
        changes.push({ ...change, ...range });
        this.#enter(name, change, range);
      }
    this.#changes.clear();
    this.#prune();
    return changes;
  }

  /** Forgets what a rolled back transaction has changed. */
  clear(): void {
    this.#changes.clear();
    this.#newest.clear();
    this.#last = undefined;
  }

  #enter(name: string, { stream, kind, key }: Omit<Change, "from" | "to">, range: TimeRange): void {
    const last = this.#readLast();
    const before = this.#newest.get(name);
    const hull = before && { from: Math.min(before.from, range.from), to: Math.max(before.to, range.to) };
    const isReplaced = before && hull && replaces(range, hull);
    if (isReplaced) {
      this.#connection.statement("DELETE FROM changes WHERE seq = ?").run([before.seq]);
      last.count--;
    }
    const { from, to } = isReplaced ? hull : range;
    const seq = ++last.seq;
    last.count++;
    this.#connection
      .statement("INSERT INTO changes (seq, stream, kind, key, from_ts, to_ts) VALUES (?, ?, ?, ?, ?, ?)")
      .run([seq, stream, kind, key, from, to]);
    this.#newest.set(name, { seq, from, to });
  }

  #readLast(): { seq: number; count: number } {
    this.#last ??= this.#connection
      .statement<{ seq: number; count: number }>(
        "SELECT coalesce(max(seq), (SELECT changes_pruned FROM warehouse_state)) AS seq, count(*) AS count FROM changes",
      )
      .get([]) as { seq: number; count: number };
    return this.#last;
  }

  #prune(): void {
    if (this.#readLast().count <= MAX_ENTRIES) return;
    const until = this.#connection.value<number>("SELECT seq FROM changes ORDER BY seq LIMIT 1 OFFSET ?", [
      PRUNED_AT_ONCE,
    ]);
    const { changes } = this.#connection.statement("DELETE FROM changes WHERE seq <= ?").run([until]);
    this.#connection.statement("UPDATE warehouse_state SET changes_pruned = ?").run([until]);
    this.#readLast().count -= changes;
    for (const [name, { seq }] of this.#newest) if (seq <= until) this.#newest.delete(name);
  }
}

/** One entry an hour for live rows, one a day for pages: a reader that has seen a part of it reads little again. */
function replaces(range: TimeRange, hull: TimeRange): boolean {
  const unit = range.to - range.from < HOUR ? HOUR : MICROS_PER_DAY;
  return Math.floor(hull.from / unit) === Math.floor((hull.to - 1) / unit);
}

export interface JournalPosition {
  /** Which journal: that of this file. */
  readonly id: number;
  /** The last entry. */
  readonly seq: number;
  /** Older entries may be deleted: a reader that is further behind has missed some. */
  readonly firstSeq: number;
}

export function readJournalPosition(connection: Connection): JournalPosition {
  const { changesId: id, changesPruned: firstSeq } = readWarehouseState(connection);
  const seq = connection.value<number>("SELECT coalesce(max(seq), ?) FROM changes", [firstSeq]);
  return { id, seq, firstSeq };
}

/** Whether a reader that has looked up to `seq` of journal `id` finds everything after it. */
export function canContinue(
  position: JournalPosition,
  { id, seq }: Pick<JournalPosition, "id" | "seq">,
): boolean {
  return id === position.id && seq >= position.firstSeq && seq <= position.seq;
}

export interface NumberedChange extends Change {
  readonly seq: number;
}

/** The changes after `after` up to `until`, oldest first. */
export function readChanges(
  connection: Pick<Connection, "statement">,
  { after, until, limit = -1 }: { readonly after: number; readonly until: number; readonly limit?: number },
): NumberedChange[] {
  return connection
    .statement<NumberedChange>(
      `SELECT seq, stream, kind, key, from_ts AS "from", to_ts AS "to" FROM changes
        WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
    )
    .all([after, until, limit]);
}

/** Whether the range has changed after `seq`. */
export function hasChangedSince(
  connection: Pick<Connection, "statement">,
  { stream, series }: { readonly stream: RowStream; readonly series: number },
  { from, to }: TimeRange,
  seq: number,
): boolean {
  const sql =
    "SELECT 1 FROM changes WHERE seq > ? AND stream = ? AND key = ? AND from_ts < ? AND to_ts > ? LIMIT 1";
  return connection.statement(sql).get([seq, stream, series, to, from]) !== undefined;
}

/** Gives the journal another name, so that every reader compares everything: the file is a copy of another. */
export function renameJournal(file: Pick<Connection, "statement">): void {
  file.statement("UPDATE warehouse_state SET changes_id = abs(random() % 9007199254740991)").run([]);
}
