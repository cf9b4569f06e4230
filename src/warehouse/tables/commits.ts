import type { Micros } from "../../model/time.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";

/*
 * Every commit that changes rows or the ledger has a number, and the versions of rows and ranges have the numbers of the commits
 * that wrote and replaced them: `since`, `until`. So a reader can ask for the state of any commit (known-at.ts).
 */

/** Numbers the commits of the writer of the file. */
export class Commits {
  readonly #connection: Connection;
  #last: readonly [seq: number, at: Micros] | undefined;
  #lastRevision: number | undefined;
  #at: Micros = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The number of the commit in progress. */
  get next(): number {
    return this.#readLast()[0] + 1;
  }

  /** The number of one more revision. */
  numberRevision(): number {
    this.#lastRevision ??= this.#connection.value<number>(
      "SELECT coalesce(max(revision), 0) FROM revision_rows",
    );
    return ++this.#lastRevision;
  }

  /** When the commit in progress began, by this machine's clock. */
  get at(): Micros {
    return this.#at;
  }

  /** Call it first in the database's transaction. */
  begin(machineNow: Micros): void {
    this.#at = machineNow;
  }

  /** Call it in the database's transaction, if it has changed anything. */
  write(clockSkew: Micros): void {
    const [seq, before] = this.#readLast();
    this.#last = [seq + 1, this.#at];
    this.#connection.run("INSERT INTO commits (seq, at, unknown_from, clock_skew) VALUES (?, ?, ?, ?)", [
      ...this.#last,
      this.#at < before ? before : null,
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
