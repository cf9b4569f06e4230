import { exitCode, Failure } from "../../model/failure.ts";
import { lockHolders } from "./lock-holders.ts";

interface Coded {
  readonly code: string;
  readonly message: string;
}

function isCoded(error: unknown): error is Coded {
  return error instanceof Error && typeof (error as Error & { code?: unknown }).code === "string";
}

/** What SQLite or the file system says, in the terms of the program. Anything else passes through unchanged. */
export function asFailure(error: unknown, path: string): unknown {
  if (error instanceof Failure || !isCoded(error)) return error;
  const { code } = error;
  if (code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT") {
    return new Failure(`the disk of ${path} is full`, {
      family: "retry",
      code: "disk_full",
      remedy: "free some space; the sync resumes by itself",
      cause: error,
    });
  }
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    return new Failure(`another program${whoWrites(path)} holds the write lock of ${path}`, {
      family: "retry",
      code: "db_locked",
      remedy: "end its write transaction; readers never get in the way",
      cause: error,
    });
  }
  if (code === "SQLITE_IOERR_GETTEMPPATH") {
    return new Failure("no folder for temporary files can be written", {
      family: "operator",
      code: "no_temporary_files",
      remedy: "set TMPDIR to one that can be",
      cause: error,
    });
  }
  // After a failed sync nobody knows which pages reached the disk, and asking again may be answered with a false yes:
  // only a new process that recovers the WAL from the file itself knows.
  if (code.startsWith("SQLITE_IOERR") || code === "EIO") {
    return new Failure(`the disk of ${path} failed to read or write (${code})`, {
      family: "operator",
      code: "io_error",
      remedy: "check the disk; the next start recovers what was committed",
      cause: error,
    });
  }
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") {
    return new Failure(`${path} is damaged (${code})`, {
      family: "operator",
      code: "db_corrupt",
      remedy: "start again: the file is set aside, never deleted, and a new one is filled",
      cause: error,
    });
  }
  if (
    /^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)|^(EACCES|EPERM|EROFS|ENOENT|ENOTDIR|EEXIST|EISDIR)$/.test(code)
  ) {
    return new Failure(`${path} cannot be opened for writing (${code})`, {
      family: "operator",
      code: "db_not_writable",
      remedy: "make the directory exist and this user its owner, on a file system that is not read-only",
      exit: exitCode.usage,
      cause: error,
    });
  }
  return error;
}

function whoWrites(path: string): string {
  const { writers } = lockHolders(path);
  return writers.length > 0 ? ` (pid ${writers.join(", ")})` : "";
}

/** Runs `work` and turns what SQLite throws into a Failure. */
export function withFailures<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asFailure(error, path);
  }
}

const poisons: ReadonlySet<string> = new Set(["io_error", "db_corrupt", "db_replaced"]);

/** True for failures after which the connection must not be used again: the process ends and the next start recovers. */
export function isPoison(error: unknown): boolean {
  return error instanceof Failure && poisons.has(error.code);
}

/** Whether whoever met this has read damaged pages, be it told in SQLite's terms or in ours. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    (isCoded(error) && /^(SQLITE_CORRUPT|SQLITE_NOTADB|db_corrupt$)/.test(error.code)) ||
    isDamage(error.cause)
  );
}
