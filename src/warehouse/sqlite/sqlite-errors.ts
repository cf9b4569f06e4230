import { type ExitCode, errorCode, exitCode, Failure, type FailureCode } from "../../model/failure.ts";
import { findLockHolders } from "./lock-holders.ts";

const notWritable =
  /^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)|^(EACCES|EPERM|EROFS|ENOENT|ENOTDIR|EEXIST|EISDIR|ELOOP)$/;

/** Turns an error of SQLite or the file system into a Failure with a remedy. Returns any other error unchanged. */
export function toFailure(error: unknown, path: string): unknown {
  if (error instanceof Failure) return error;
  const code = errorCode(error);
  const fail = (as: FailureCode, message: string, remedy: string, exit?: ExitCode) =>
    new Failure(message, { code: as, remedy, cause: error, ...(exit && { exit }) });
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code))
    return fail(
      "disk_full",
      `the disk of ${path} is full`,
      "free some space; the sync resumes automatically",
    );
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    const { writers } = findLockHolders(path);
    const pids = writers.length > 0 ? ` (pid ${writers.join(", ")})` : "";
    const message = `another program${pids} holds the write lock of ${path}`;
    return fail("db_locked", message, "end its write transaction; readers do not block the writer");
  }
  if (code === "SQLITE_IOERR_GETTEMPPATH") {
    const message = "SQLite found no writable folder for temporary files";
    return fail("no_temporary_files", message, "set TMPDIR to a writable folder");
  }
  // After a failed fsync the kernel may have dropped the dirty pages, and a second fsync may report success falsely.
  // Only a new process that recovers the WAL from disk knows what was written.
  if (/^(SQLITE_IOERR|EIO$)/.test(code)) {
    const message = `the disk of ${path} failed to read or write (${code})`;
    return fail("io_error", message, "check the disk; the next start recovers what was committed");
  }
  if (/^SQLITE_(CORRUPT|NOTADB$)/.test(code)) {
    const remedy = "restart: the damaged file is quarantined, never deleted, and a new one is filled";
    return fail("db_corrupt", `${path} is damaged (${code})`, remedy);
  }
  if (notWritable.test(code)) {
    const remedy = "create the directory, make this user its owner, and use a writable file system";
    return fail("db_not_writable", `${path} cannot be opened for writing (${code})`, remedy, exitCode.usage);
  }
  return error;
}

/** Runs `work` and turns errors of SQLite and the file system into Failures. */
export function translateErrors<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toFailure(error, path);
  }
}

const fatalCodes: ReadonlySet<FailureCode> = new Set(["io_error", "db_corrupt", "db_replaced"]);

/** After such a failure the connection must not be used again: the process ends, and the next start recovers. */
export function isFatal(error: unknown): boolean {
  return error instanceof Failure && fatalCodes.has(error.code);
}

export type BlockingFailure = Failure & { readonly code: "disk_full" | "db_locked" };

/** Whether the same call can succeed later: there is no space, or another program holds the write lock. */
export function isBlocking(error: unknown): error is BlockingFailure {
  return error instanceof Failure && (error.code === "disk_full" || error.code === "db_locked");
}

/** Whether the error, or one of its causes, reports a damaged database, by an SQLite code or by `db_corrupt`. */
export function isCorruption(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /^(SQLITE_CORRUPT|SQLITE_NOTADB|db_corrupt$)/.test(errorCode(error)) || isCorruption(error.cause);
}
