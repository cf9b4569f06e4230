import { statSync } from "node:fs";
import Database from "better-sqlite3";
import { Failure } from "../../model/failure.ts";
import { withFailures } from "./sqlite-errors.ts";

export type Statement = Database.Statement<unknown[], unknown>;

/**
 * How long a statement waits for another program's write transaction before it gives up: short enough that a stop is not
 * kept waiting; who has work to do tries again.
 */
export const BUSY_TIMEOUT_MS = 2_000;
/** Left in place after a checkpoint; a longer WAL is cut back to this. */
const WAL_KEPT_BYTES = 64 * 1024 * 1024;
/** Rows arrive in order, a page at a time: the writer comes back to few places, and readers have a cache of their own. */
const WRITER_CACHE_KIB = 8 * 1024;
const READER_CACHE_KIB = 64 * 1024;
/**
 * For a process that stays and looks at the same few tables again and again: what a larger cache once held, the C library
 * keeps after SQLite has let it go.
 */
export const SMALL_CACHE_KIB = 8 * 1024;

/** Asked for and read back: SQLite ignores a pragma that it does not know or cannot grant without a word. */
const writerPragmas = [
  ["journal_mode", "wal"],
  // better-sqlite3 is built with NORMAL for WAL, which loses the last commits when the power fails.
  ["synchronous", 2],
  // A commit that checkpoints keeps those waiting who want to know that it is on disk: `WalShortener` does it after them.
  ["wal_autocheckpoint", 0],
  ["journal_size_limit", WAL_KEPT_BYTES],
  ["cache_size", -WRITER_CACHE_KIB],
  ["busy_timeout", BUSY_TIMEOUT_MS],
] as const;

const readerPragmas = (cacheKib: number) =>
  [
    ["query_only", 1],
    ["cache_size", -cacheKib],
    ["busy_timeout", BUSY_TIMEOUT_MS],
  ] as const;

/** One SQLite connection with its prepared statements. */
export class Connection {
  readonly path: string;
  readonly database: Database.Database;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string, database: Database.Database) {
    this.path = path;
    this.database = database;
  }

  /** The prepared form of `sql`, made once. */
  statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }
}

export function connectWriter(path: string): Connection {
  return withFailures(path, () => {
    const database = new Database(path, { timeout: BUSY_TIMEOUT_MS });
    return connectionOn(path, database, writerPragmas);
  });
}

/** Cannot write, blocks no writer and is blocked by none. */
export function connectReader(path: string, cacheKib = READER_CACHE_KIB): Connection {
  return withFailures(path, () => {
    const database = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
    return connectionOn(path, database, readerPragmas(cacheKib));
  });
}

/**
 * For looking at a file before anybody writes it. Read-only where a WAL waits to be recovered, since closing a writer
 * would move it into the file; otherwise as a writer that does not write, which leaves nothing behind when it closes.
 */
export function openForInspection(path: string): Connection {
  const hasWal = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const database = new Database(path, { readonly: hasWal, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  return connectionOn(path, database, readerPragmas(READER_CACHE_KIB));
}

/** Left open, a database that refuses its settings would keep what it knows of the files for others of this process. */
function connectionOn(path: string, database: Database.Database, pragmas: Pragmas): Connection {
  try {
    setPragmas(database, pragmas);
    return new Connection(path, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

type Pragmas = readonly (readonly [string, string | number])[];

function setPragmas(database: Database.Database, pragmas: Pragmas): void {
  for (const [name, value] of pragmas) {
    database.pragma(`${name} = ${value}`);
    const granted = database.pragma(name, { simple: true });
    if (granted !== value) {
      throw new Failure(`SQLite did not grant ${name} = ${value} but ${String(granted)}`, {
        family: "operator",
        code: "pragma_refused",
        remedy: "put the warehouse on a local file system",
      });
    }
  }
}
