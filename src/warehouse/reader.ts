import { statSync } from "node:fs";
import { exitCode, Failure, type FailureDetails } from "../model/failure.ts";
import { pendingMigrations } from "./migrate.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import { resolvePath } from "./sqlite/disk.ts";
import { asFailure } from "./sqlite/sqlite-errors.ts";

/**
 * Opens the warehouse for looking, runs `work`, and closes it again. Creates nothing and blocks nobody. A file that is
 * missing, foreign, newer or damaged ends in one line that says what to do, in the words of somebody who reads.
 */
export function lookOn<T>(path: string, work: (connection: Connection) => T): T {
  const connection = openReader(path);
  try {
    return work(connection);
  } catch (error) {
    throw asReadersFailure(error, path);
  } finally {
    connection.close();
  }
}

/** The same for work that takes its time: the caller closes it. */
export function openReader(path: string, cacheKib?: number): Connection {
  assertFile(path);
  let connection: Connection | undefined;
  try {
    connection = connectReader(resolvePath(path), cacheKib);
    if (pendingMigrations(connection).length > 0) throw older(path);
    return connection;
  } catch (error) {
    connection?.close();
    throw asReadersFailure(error, path);
  }
}

function assertFile(path: string): void {
  let found: ReturnType<typeof statSync>;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unreadable(path, error);
  }
  if (!found || found.size === 0) {
    const what = found ? `${path} is empty` : `there is no warehouse at ${path}`;
    throw failure(`${what}: nothing is synced yet`, {
      code: "no_warehouse",
      remedy: "`mds-sync backfill` makes and fills it; if it lies elsewhere, set warehouse.path",
      exit: exitCode.incomplete,
    });
  }
  if (!found.isFile()) {
    throw failure(`${path} is not a file`, {
      code: "not_a_warehouse",
      remedy: "set warehouse.path to the SQLite file",
      exit: exitCode.usage,
    });
  }
}

function older(path: string): Failure {
  return failure(`${path} was written by an older version of mds-sync`, {
    code: "older_warehouse",
    remedy: "`mds-sync run` or `mds-sync backfill` brings it up to date",
    exit: exitCode.usage,
  });
}

/** What a writer is told does not always fit a reader, who repairs nothing. */
export function asReadersFailure(thrown: unknown, path: string): unknown {
  const error = asFailure(thrown, path);
  if (!(error instanceof Failure)) return error;
  const { cause } = error;
  if (codeOf(cause) === "SQLITE_NOTADB") {
    return failure(`${path} is not an SQLite database`, {
      code: "not_a_warehouse",
      remedy: "set warehouse.path to the warehouse; if this was one, `mds-sync backfill` sets it aside",
      exit: exitCode.usage,
      cause,
    });
  }
  if (error.code === "db_not_writable") {
    return unreadable(path, cause);
  }
  if (error.code === "db_corrupt") {
    return failure(error.message, {
      code: "db_corrupt",
      remedy: "`mds-sync backfill` sets the file aside, never deletes it, and fills a new one",
      cause,
    });
  }
  return error;
}

function unreadable(path: string, cause: unknown): Failure {
  return failure(`${path} cannot be read (${codeOf(cause)})`, {
    code: "db_unreadable",
    remedy: "let this user read the file and what lies beside it, and enter its directory",
    exit: exitCode.usage,
    cause,
  });
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "no reason given";
}

function failure(message: string, details: Omit<FailureDetails, "family">): Failure {
  return new Failure(message, { family: "operator", ...details });
}
