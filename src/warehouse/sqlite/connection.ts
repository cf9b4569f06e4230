import { statSync } from "node:fs";
import Database from "better-sqlite3";
import { Failure } from "../../model/failure.ts";
import type { Micros } from "../../model/time.ts";
import { translateErrors } from "./sqlite-errors.ts";

/**
 * A prepared statement. `Row` is one result row: a row type of the schema, or the columns of a view or an aggregate.
 */
export type Statement<Row = unknown> = Database.Statement<unknown[], Row>;

/**
 * How long a statement waits for another program's write transaction. Short, so that a shutdown is not delayed; callers
 * retry.
 */
export const BUSY_TIMEOUT_MS = 2_000;
/** After a checkpoint SQLite truncates a longer WAL file to this size. */
export const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024;
/** Rows arrive in time order, so the writer revisits few pages. Each reader has its own cache. */
const WRITER_CACHE_KIB = 8 * 1024;
const READER_CACHE_KIB = 64 * 1024;
/** For long-running readers of a few tables: malloc does not return the memory of a larger cache to the system. */
export const SMALL_CACHE_KIB = 8 * 1024;

/** Each pragma is set and then read back: SQLite silently ignores a pragma that it does not know or cannot apply. */
const writerPragmas = [
  ["journal_mode", "wal"],
  // 2 is FULL. better-sqlite3 defaults to NORMAL in WAL mode, which loses the last commits on a power failure.
  ["synchronous", 2],
  // A checkpoint inside a commit would delay its caller: `WalCheckpointer` runs after the commit instead.
  ["wal_autocheckpoint", 0],
  ["journal_size_limit", JOURNAL_SIZE_LIMIT_BYTES],
  ["cache_size", -WRITER_CACHE_KIB],
  ["busy_timeout", BUSY_TIMEOUT_MS],
] as const;

const readerPragmas = (cacheKib: number) =>
  [
    ["query_only", 1],
    ["cache_size", -cacheKib],
    ["busy_timeout", BUSY_TIMEOUT_MS],
  ] as const;

/** An earlier state of the warehouse. */
export interface KnownAt {
  /** The last commit that counts. */
  readonly commit: number;
  /** By the service's clock. */
  readonly present: Micros;
}

/** SQL of an earlier state, whose rows are in no parts (tables/row-parts.ts) and ordered by `ts` alone. */
export const withoutParts = (sql: string) => sql.replaceAll(/\b(\w+\.)?part (ASC|DESC), /g, "");

type SqlParameters = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Runs SQL by its text; `Row` and `Value` must match its columns. */
export abstract class SqlRunner {
  /** Returns the prepared statement for `sql`, prepared once per connection. */
  abstract statement<Row = unknown>(sql: string): Statement<Row>;

  /** Returns the number of rows that changed. */
  run(sql: string, parameters: SqlParameters = []): number {
    return this.statement(sql).run(parameters).changes;
  }

  rows<Row>(sql: string, parameters: SqlParameters = []): Row[] {
    return this.statement<Row>(sql).all(parameters);
  }

  findRow<Row>(sql: string, parameters: SqlParameters = []): Row | undefined {
    return this.statement<Row>(sql).get(parameters);
  }

  /** Each row as an array, which is faster than an object for many rows. */
  tuples<Row>(sql: string, parameters: SqlParameters = []): Row[] {
    return this.statement<Row>(sql).raw().all(parameters);
  }

  findTuple<Row>(sql: string, parameters: SqlParameters = []): Row | undefined {
    return this.statement<Row>(sql).raw().get(parameters);
  }

  /** The only column of each row. */
  values<Value>(sql: string, parameters: SqlParameters = []): Value[] {
    return this.statement<Value>(sql).pluck().all(parameters);
  }

  findValue<Value>(sql: string, parameters: SqlParameters = []): Value | undefined {
    return this.statement<Value>(sql).pluck().get(parameters);
  }

  /** The only value of a query that always returns one row, such as an aggregate. */
  value<Value>(sql: string, parameters: SqlParameters = []): Value {
    const value = this.findValue<Value>(sql, parameters);
    if (value === undefined) throw new Error(`the query returned no row: ${sql}`);
    return value;
  }
}

export class Connection extends SqlRunner {
  /** The state that its tables show (tables/known-at.ts); undefined: the newest. */
  knownAt: KnownAt | undefined;
  readonly path: string;
  readonly database: Database.Database;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string, database: Database.Database) {
    super();
    this.path = path;
    this.database = database;
  }

  override statement<Row = unknown>(sql: string): Statement<Row> {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.database.prepare(this.knownAt ? withoutParts(sql) : sql);
      this.#statements.set(sql, statement);
    }
    return statement as Statement<Row>;
  }

  /** What is wrong with the file, in one line; undefined: nothing. Reads all of it. */
  findDamage(check: "quick_check" | "integrity_check" = "quick_check"): string | undefined {
    const verdict = String(this.database.pragma(`${check}(1)`, { simple: true }));
    return verdict === "ok" ? undefined : verdict.replaceAll(/\s+/g, " ");
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

export function connectWriter(path: string): Connection {
  return translateErrors(path, () => connect(path, {}, writerPragmas));
}

/** A read-only connection. It never blocks the writer, and the writer never blocks it. */
export function connectReader(path: string, cacheKib = READER_CACHE_KIB): Connection {
  const options = { readonly: true, fileMustExist: true };
  return translateErrors(path, () => connect(path, options, readerPragmas(cacheKib)));
}

/**
 * For inspection before the first write. Read-only if there is a WAL, because closing a writable connection would
 * checkpoint it; otherwise writable, because only a writable connection removes its `-wal` and `-shm` files.
 */
export function openForInspection(path: string): Connection {
  const hasWal = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  return connect(path, { readonly: hasWal, fileMustExist: true }, readerPragmas(READER_CACHE_KIB));
}

/**
 * Closes the database if a pragma fails: SQLite shares the state of a file among all connections of the process, so a
 * connection left open would affect the next one.
 */
function connect(
  path: string,
  options: Database.Options,
  pragmas: readonly (readonly [string, string | number])[],
): Connection {
  const database = new Database(path, { ...options, timeout: BUSY_TIMEOUT_MS });
  try {
    for (const [name, value] of pragmas) {
      database.pragma(`${name} = ${value}`);
      const actual = database.pragma(name, { simple: true });
      if (actual !== value)
        throw new Failure(`SQLite did not accept ${name} = ${value}: it is ${String(actual)}`, {
          code: "pragma_refused",
          remedy: "put the warehouse on a local file system",
        });
    }
    return new Connection(path, database);
  } catch (error) {
    database.close();
    throw error;
  }
}
