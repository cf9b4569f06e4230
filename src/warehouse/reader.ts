import { statSync } from "node:fs";
import { errorCode, exitCode, Failure } from "../model/failure.ts";
import { findPendingMigrations } from "./migrate.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import { assertRegularFile, resolvePath } from "./sqlite/disk.ts";
import { toFailure } from "./sqlite/sqlite-errors.ts";

/**
 * Opens the warehouse for reading, runs `work`, and closes it. Creates no file and blocks no writer. Throws a Failure
 * with a remedy for a reader if the file is missing, damaged, or of another version or program.
 */
export function withReader<T>(path: string, work: (connection: Connection) => T): T {
  using connection = openReader(path);
  try {
    return work(connection);
  } catch (error) {
    throw toReaderFailure(error, path);
  }
}

/** Like `withReader`, but the caller closes the connection. */
export function openReader(path: string, cacheKib?: number): Connection {
  assertWarehouseFile(path);
  let connection: Connection | undefined;
  try {
    connection = connectReader(resolvePath(path), cacheKib);
    if (findPendingMigrations(connection).length > 0)
      throw new Failure(`${path} was written by an older version of mds-sync`, {
        code: "older_warehouse",
        remedy: "`mds-sync run` or `mds-sync backfill` upgrades it",
      });
    return connection;
  } catch (error) {
    connection?.close();
    throw toReaderFailure(error, path);
  }
}

function assertWarehouseFile(path: string): void {
  let found: ReturnType<typeof statSync>;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unreadable(path, error);
  }
  if (!found || found.size === 0) {
    const what = found ? `${path} is empty` : `there is no warehouse at ${path}`;
    throw new Failure(`${what}: nothing is synced yet`, {
      code: "no_warehouse",
      remedy: "`mds-sync backfill` creates and fills it; if it is elsewhere, set warehouse.path",
      exit: exitCode.incomplete,
    });
  }
  assertRegularFile(path);
}

/** Replaces remedies that only a writer can apply: a reader repairs nothing. */
export function toReaderFailure(thrown: unknown, path: string): unknown {
  const error = toFailure(thrown, path);
  if (!(error instanceof Failure)) return error;
  const { cause } = error;
  if (errorCode(cause) === "SQLITE_NOTADB") {
    return new Failure(`${path} is not an SQLite database`, {
      code: "not_a_warehouse",
      remedy: "set warehouse.path to the warehouse; if this was one, `mds-sync backfill` quarantines it",
      cause,
    });
  }
  if (error.code === "db_not_writable") return unreadable(path, cause);
  if (error.code === "db_corrupt") {
    return new Failure(error.message, {
      code: "db_corrupt",
      remedy: "`mds-sync backfill` quarantines the file, never deletes it, and fills a new one",
      cause,
    });
  }
  return error;
}

function unreadable(path: string, cause: unknown): Failure {
  return new Failure(`${path} cannot be read (${errorCode(cause) || "no reason given"})`, {
    code: "db_unreadable",
    remedy: `let this user read the file, its -wal and -shm files, and its directory; if those two are missing, \`touch ${path}-wal ${path}-shm\` makes it readable without write access`,
    cause,
  });
}
