import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import Database from "better-sqlite3";
import { Failure } from "../../model/failure.ts";
import { resolvePath } from "./disk.ts";
import { asFailure } from "./sqlite-errors.ts";

/** A writer that ended without giving the lock back. */
export interface KilledWriter {
  /** `pid 17 on host`. */
  readonly who: string;
  /** When it became the writer, milliseconds since 1970. */
  readonly since: number;
}

export interface WriterLock {
  /** The writer before this one, where it was killed. */
  readonly killed: KilledWriter | undefined;
  release(): void;
}

/**
 * One writer per warehouse. The lock is the operating system's own, on a second file: a stopped process keeps it, a
 * dead one loses it, whatever killed it. SQLite takes it for us by an exclusive transaction that stays open, because
 * SQLite also knows the trap: a POSIX lock is lost as soon as the process closes *any* descriptor of the file. So
 * nothing else may open the lock file; who holds it stands in a file of its own.
 */
export function takeWriterLock(path: string): WriterLock {
  const holderFile = `${path}.writer`;
  let lock: Database.Database | undefined;
  let killed: KilledWriter | undefined;
  try {
    lock = new Database(`${path}.lock`, { timeout: 0 });
    lock.exec("BEGIN EXCLUSIVE");
    killed = readKilled(holderFile);
    writeFileSync(holderFile, `pid ${process.pid} on ${hostname()}\n`);
  } catch (error) {
    lock?.close();
    throw asHeld(error, path);
  }
  const held = lock;
  return {
    killed,
    release() {
      if (!held.open) return;
      rmSync(holderFile, { force: true });
      held.close();
    },
  };
}

/** Says who writes the warehouse, before anything is begun that another writer would make useless. Touches nothing. */
export function assertNoWriter(given: string): void {
  const path = resolvePath(given);
  if (!existsSync(`${path}.lock`)) return;
  let lock: Database.Database | undefined;
  try {
    lock = new Database(`${path}.lock`, { readonly: true, timeout: 0 });
    lock.pragma("schema_version");
  } catch (error) {
    throw asHeld(error, path);
  } finally {
    lock?.close();
  }
}

function asHeld(error: unknown, path: string): unknown {
  const failure = asFailure(error, `${path}.lock`);
  if (!(failure instanceof Failure) || failure.code !== "db_locked") return failure;
  return new Failure(`another mds-sync writes ${path} (${holder(`${path}.writer`)})`, {
    family: "retry",
    code: "writer_elsewhere",
    remedy: "leave the work to it, or stop it first",
  });
}

/** Who gives the lock back takes his name away: one that is found under the lock was left by a writer that could not. */
function readKilled(holderFile: string): KilledWriter | undefined {
  const left = statSync(holderFile, { throwIfNoEntry: false });
  return left && { who: holder(holderFile), since: left.mtimeMs };
}

function holder(file: string): string {
  try {
    return readFileSync(file, "utf8").trim() || "pid unknown";
  } catch {
    return "pid unknown";
  }
}
