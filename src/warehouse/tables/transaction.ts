import { rowStreams, type Stream } from "../../model/streams.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { type Connection, SqlRunner, type Statement } from "../sqlite/connection.ts";
import type { HighWaterMarks } from "./high-water-marks.ts";
import type { Journal } from "./journal.ts";
import type { KeyDictionary } from "./key-dictionary.ts";
import { pastTable, type RowParts } from "./row-parts.ts";

/** What the writer of a file keeps in memory from one transaction to the next. */
export interface WriterMemory {
  readonly dictionary: KeyDictionary;
  readonly highWaterMarks: HighWaterMarks;
  readonly journal: Journal;
  readonly commits: Commits;
  readonly parts: RowParts;
}

/** An open write transaction. Every write needs one; it rejects statements after its end. */
export class Transaction extends SqlRunner {
  /** The present by the service's clock, which stamps the records. */
  readonly now: Micros;
  readonly dictionary: KeyDictionary;
  readonly highWaterMarks: HighWaterMarks;
  readonly journal: Journal;
  readonly commits: Commits;
  readonly parts: RowParts;
  readonly #connection: Connection;
  readonly #undoOnRollback: (() => void)[];
  readonly #writtenKeys = new Set<string>();
  #isOpen = true;

  constructor(connection: Connection, memory: WriterMemory, undoOnRollback: (() => void)[], now: Micros) {
    super();
    this.#connection = connection;
    this.dictionary = memory.dictionary;
    this.highWaterMarks = memory.highWaterMarks;
    this.journal = memory.journal;
    this.commits = memory.commits;
    this.parts = memory.parts;
    this.#undoOnRollback = undoOnRollback;
    this.now = now;
  }

  /** Its number, which the versions get that it writes. */
  get commit(): number {
    return this.commits.next;
  }

  /** Its moment by this machine's clock. */
  get at(): Micros {
    return this.commits.at;
  }

  /**
   * The same as a text, stored as `seen_at`, `received_at` and `first_seen`: what `--known-at` compares with the moment of a commit.
   * So this transaction gets a number.
   */
  stamp(): string {
    this.commits.isStamped = true;
    return formatTimestamp(this.at);
  }

  override statement<Row = unknown>(sql: string): Statement<Row> {
    if (!this.#isOpen) throw new Error("the transaction has ended: it accepts no more statements");
    return this.#connection.statement<Row>(sql);
  }

  /** Records that this transaction wrote a page of this series, even if no row changed. */
  markWritten(stream: Stream, key: number): void {
    this.#writtenKeys.add(`${stream} ${key}`);
  }

  hasWritten(stream: Stream, key: number): boolean {
    return this.#writtenKeys.has(`${stream} ${key}`);
  }

  /** `undo` restores what the caller changed in memory, if this transaction is rolled back. */
  onRollback(undo: () => void): void {
    this.#undoOnRollback.push(undo);
  }

  end(): void {
    this.#isOpen = false;
  }
}

/*
 * Every commit that changes rows, the ledger or a list has a number, and the versions of rows and ranges have the numbers of the commits
 * that wrote and replaced them: `since`, `until`. So a reader can ask for the state of any commit (known-at.ts).
 */

/** Of each table a seek in its index: the view of the revisions would read them all. */
const lastRevisionSql = `SELECT max(${rowStreams
  .map((stream) => `(SELECT coalesce(max(revision), 0) FROM ${pastTable(stream)} WHERE revision > 0)`)
  .join(", ")})`;

export class Commits {
  readonly #connection: Connection;
  #last: readonly [seq: number, at: Micros] | undefined;
  #lastRevision: number | undefined;
  /** When the commit in progress began, by this machine's clock. */
  at: Micros = 0;
  /** Whether the commit in progress has stored its moment. */
  isStamped = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The number of the commit in progress. */
  get next(): number {
    return this.#readLast()[0] + 1;
  }

  numberRevision(): number {
    this.#lastRevision ??= this.#connection.value<number>(lastRevisionSql);
    return ++this.#lastRevision;
  }

  /** Call it first in the database's transaction. */
  begin(machineNow: Micros): void {
    this.at = machineNow;
    this.isStamped = false;
  }

  /** Call it in the database's transaction, if it has changed anything. */
  write(clockSkew: Micros): void {
    const [seq, before] = this.#readLast();
    this.#last = [seq + 1, this.at];
    this.#connection.run("INSERT INTO commits (seq, at, unknown_from, clock_skew) VALUES (?, ?, ?, ?)", [
      ...this.#last,
      this.at < before ? before : null,
      clockSkew,
    ]);
  }

  /** Forgets what a rolled back transaction has numbered. */
  clear(): void {
    this.#last = undefined;
    this.#lastRevision = undefined;
  }

  #readLast(): readonly [number, Micros] {
    this.#last ??= this.#connection.findTuple<readonly [number, Micros]>(
      "SELECT seq, at FROM commits ORDER BY seq DESC LIMIT 1",
    ) ?? [0, 0];
    return this.#last;
  }
}

/** A warehouse knows its past from the first writer on that keeps it. */
export function beginCommits(file: SqlRunner, now: Micros): void {
  file.run(
    "INSERT INTO commits (seq, at) SELECT 0, ? WHERE NOT EXISTS (SELECT 1 FROM commits WHERE seq >= 0)",
    [now],
  );
}

/** A copy takes the place of its warehouse: what that has learned since the copy was made is not in it. */
export function markRestored(file: SqlRunner, now: Micros): void {
  file.run(
    `INSERT INTO commits (seq, at, unknown_from, clock_skew)
        SELECT seq + 1, ?, at, clock_skew FROM commits WHERE seq = (SELECT max(seq) FROM commits)`,
    [now],
  );
}
