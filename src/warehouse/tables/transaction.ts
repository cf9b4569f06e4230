import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { type Connection, type Orm, SqlRunner, type Statement } from "../sqlite/connection.ts";
import type { Commits } from "./commits.ts";
import type { HighWaterMarks } from "./high-water-marks.ts";
import type { Journal } from "./journal.ts";
import type { KeyDictionary } from "./key-dictionary.ts";
import type { RowParts } from "./row-parts.ts";

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
  /** What this transaction changes is entered here. */
  readonly journal: Journal;
  readonly #commits: Commits;
  readonly #parts: RowParts;
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
    this.#commits = memory.commits;
    this.#parts = memory.parts;
    this.#undoOnRollback = undoOnRollback;
    this.now = now;
  }

  /** Its number, which the versions get that it writes. */
  get commit(): number {
    return this.#commits.next;
  }

  /**
   * Its moment by this machine's clock, stored as `changed_at`, `seen_at`, `received_at` and `first_seen`: what `--known-at` compares
   * with.
   */
  get at(): Micros {
    return this.#commits.at;
  }

  /** What a key must be added to, for the slot of one more live row. */
  openPart(): number {
    return this.#parts.openBase(this.at);
  }

  numberRevision(): number {
    return this.#commits.numberRevision();
  }

  override statement<Row = unknown>(sql: string): Statement<Row> {
    this.#assertOpen();
    return this.#connection.statement<Row>(sql);
  }

  override get orm(): Orm {
    this.#assertOpen();
    return this.#connection.orm;
  }

  override prepared<Query>(build: (orm: Orm) => Query): Query {
    this.#assertOpen();
    return this.#connection.prepared(build);
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

  #assertOpen(): void {
    if (!this.#isOpen) throw new Error("the transaction has ended: it accepts no more statements");
  }
}
