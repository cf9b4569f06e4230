import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import Database from "better-sqlite3";
import { Failure } from "../../model/failure.ts";
import { resolvePath } from "./disk.ts";
import { toFailure } from "./sqlite-errors.ts";

/** A previous writer that ended without releasing its lock. */
export interface KilledWriter {
  /** For example `pid 17 on host`. */
  readonly holder: string;
  /** When it acquired the lock, in milliseconds since 1970. */
  readonly sinceMs: number;
}

export interface WriterLock {
  /** The previous writer, if it was killed. */
  readonly killedWriter: KilledWriter | undefined;
  release(): void;
}

/**
 * Allows one writer per warehouse, by a POSIX lock on a second file: a suspended process keeps it, a dead one loses it.
 * Closing *any* descriptor of that file releases the lock, so only SQLite may open it; a third file names the holder.
 */
export function acquireWriterLock(path: string): WriterLock {
  const holderFile = `${path}.writer`;
  let lock: Database.Database | undefined;
  let killedWriter: KilledWriter | undefined;
  try {
    lock = new Database(`${path}.lock`, { timeout: 0 });
    // The open transaction is the lock.
    lock.exec("BEGIN EXCLUSIVE");
    killedWriter = readKilledWriter(holderFile);
    writeFileSync(holderFile, `pid ${process.pid} on ${hostname()}\n`);
  } catch (error) {
    lock?.close();
    throw toWriterLockFailure(error, path);
  }
  const heldLock = lock;
  return {
    killedWriter,
    release() {
      if (!heldLock.open) return;
      rmSync(holderFile, { force: true });
      heldLock.close();
    },
  };
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
    throw toWriterLockFailure(error, path);
  } finally {
    lock?.close();
  }
}

function toWriterLockFailure(error: unknown, path: string): unknown {
  const failure = toFailure(error, `${path}.lock`);
  if (!(failure instanceof Failure) || failure.code !== "db_locked") return failure;
  return new Failure(`another mds-sync writes ${path} (${readHolder(`${path}.writer`)})`, {
    code: "writer_elsewhere",
    remedy: "stop that process first, or let it do the work",
  });
}

/** A writer removes its holder file on release. If the file exists when we get the lock, that writer was killed. */
function readKilledWriter(holderFile: string): KilledWriter | undefined {
  const left = statSync(holderFile, { throwIfNoEntry: false });
  return left && { holder: readHolder(holderFile), sinceMs: left.mtimeMs };
}

function readHolder(file: string): string {
  try {
    return readFileSync(file, "utf8").trim() || "pid unknown";
  } catch {
    return "pid unknown";
  }
}
