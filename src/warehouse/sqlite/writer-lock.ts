import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import Database from "better-sqlite3";
import { exitCode, Failure } from "../../model/failure.ts";
import { isSymbolicLink, resolvePath } from "./disk.ts";
import { isCorruption, toFailure } from "./sqlite-errors.ts";

/** A previous writer that ended without releasing its lock, and when it acquired that, in milliseconds since 1970. */
export type KilledWriter = NonNullable<ReturnType<typeof readKilledWriter>>;

export type WriterLock = ReturnType<typeof acquireWriterLock>;

/**
 * Allows one writer per warehouse, by a POSIX lock on a second file: a suspended process keeps it, a dead one loses it.
 * Closing *any* descriptor of that file releases the lock, so only SQLite may open it; a third file names the holder.
 */
export function acquireWriterLock(path: string) {
  const holderFile = `${path}.writer`;
  let lock: Database.Database | undefined;
  let killedWriter: KilledWriter | undefined;
  try {
    for (const file of [`${path}.lock`, holderFile]) assertNoLink(file);
    lock = openLockFile(`${path}.lock`);
    killedWriter = readKilledWriter(holderFile);
    writeHolder(holderFile);
  } catch (error) {
    lock?.close();
    throw toWriterLockFailure(error, path);
  }
  const heldLock = lock;
  return {
    /** The previous writer, if it was killed. */
    killedWriter,
    release(): void {
      if (!heldLock.open) return;
      try {
        removeHolder(holderFile);
      } finally {
        heldLock.close();
      }
    },
  };
}

/** Both files are overwritten: a link would let whoever placed it choose the file. */
function assertNoLink(file: string): void {
  if (!isSymbolicLink(file)) return;
  throw new Failure(`${file} is a symbolic link`, {
    code: "db_not_writable",
    remedy: "remove the link: mds-sync creates its own file there",
    exit: exitCode.usage,
  });
}

function writeHolder(file: string): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const descriptor = openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
  try {
    writeFileSync(descriptor, `pid ${process.pid} on ${hostname()}\n`);
  } finally {
    closeSync(descriptor);
  }
}

/** In a folder that is no longer writable the file stays, but empty: its writer was not killed. */
function removeHolder(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    truncateSync(file);
    throw error;
  }
}

/** The open transaction is the lock. A lock file that is no database (a power cut) is emptied and used again. */
function openLockFile(file: string): Database.Database {
  try {
    return beginExclusive(file);
  } catch (error) {
    // SQLite reads the file only with a lock on it: corruption also means that no other process holds it.
    if (!isCorruption(error)) throw error;
  }
  // Never a new file: a process that starts at the same moment could lock the old one, and both would write.
  truncateSync(file);
  return beginExclusive(file);
}

function beginExclusive(file: string): Database.Database {
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Fails early if another process is writing the warehouse. Creates and changes no file. */
export function assertNoWriter(given: string): void {
  const path = resolvePath(given);
  if (!existsSync(`${path}.lock`)) return;
  let lock: Database.Database | undefined;
  try {
    lock = new Database(`${path}.lock`, { readonly: true, timeout: 0 });
    lock.pragma("schema_version");
  } catch (error) {
    if (!isCorruption(error)) throw toWriterLockFailure(error, path);
  } finally {
    lock?.close();
  }
}

function toWriterLockFailure(error: unknown, path: string): unknown {
  if (isCorruption(error))
    return new Failure(`another program writes to ${path}.lock`, {
      code: "db_not_writable",
      remedy: "find that program and keep it off this file; the lock file itself holds no data",
      cause: error,
    });
  const failure = toFailure(error, `${path}.lock`);
  if (!(failure instanceof Failure) || failure.code !== "db_locked") return failure;
  return new Failure(`another mds-sync writes ${path} (${readHolder(`${path}.writer`)})`, {
    code: "writer_elsewhere",
    remedy: "stop that process first, or let it do the work",
  });
}

/** A writer removes or empties its holder file on release. If it names one when we get the lock, that writer was killed. */
function readKilledWriter(holderFile: string) {
  const left = statSync(holderFile, { throwIfNoEntry: false });
  return left && left.size > 0 ? { holder: readHolder(holderFile), sinceMs: left.mtimeMs } : undefined;
}

function readHolder(file: string): string {
  try {
    return readFileSync(file, "utf8").trim() || "pid unknown";
  } catch {
    return "pid unknown";
  }
}
