import { errorCode, exitCode, Failure, type FailureCode } from "../../model/failure.ts";
import { findLockHolders } from "./lock-holders.ts";

/** Turns an error of SQLite or the file system into a Failure with a remedy. Returns any other error unchanged. */
export function toFailure(error: unknown, path: string): unknown {
  if (error instanceof Failure) return error;
  const code = errorCode(error);
  if (code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT") {
    return new Failure(`the disk of ${path} is full`, {
      code: "disk_full",
      remedy: "free some space; the sync resumes automatically",
      cause: error,
    });
  }
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    const { writers } = findLockHolders(path);
    const pids = writers.length > 0 ? ` (pid ${writers.join(", ")})` : "";
    return new Failure(`another program${pids} holds the write lock of ${path}`, {
      code: "db_locked",
      remedy: "end its write transaction; readers do not block the writer",
      cause: error,
    });
  }
  if (code === "SQLITE_IOERR_GETTEMPPATH") {
    return new Failure("SQLite found no writable folder for temporary files", {
      code: "no_temporary_files",
      remedy: "set TMPDIR to a writable folder",
      cause: error,
    });
  }
  // After a failed fsync the kernel may have dropped the dirty pages, and a second fsync may report success falsely.
  // Only a new process that recovers the WAL from disk knows what was written.
  if (code.startsWith("SQLITE_IOERR") || code === "EIO") {
    return new Failure(`the disk of ${path} failed to read or write (${code})`, {
      code: "io_error",
      remedy: "check the disk; the next start recovers what was committed",
      cause: error,
    });
  }
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") {
    return new Failure(`${path} is damaged (${code})`, {
      code: "db_corrupt",
      remedy: "restart: the damaged file is quarantined, never deleted, and a new one is filled",
      cause: error,
    });
  }
  if (
    /^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)|^(EACCES|EPERM|EROFS|ENOENT|ENOTDIR|EEXIST|EISDIR|ELOOP)$/.test(
      code,
    )
  ) {
    return new Failure(`${path} cannot be opened for writing (${code})`, {
      code: "db_not_writable",
      remedy: "create the directory, make this user its owner, and use a writable file system",
      exit: exitCode.usage,
      cause: error,
    });
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
