import { readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { exitCode, Failure } from "../model/failure.ts";
import { openReader } from "./reader.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import {
  type FileSystemInfo,
  freeBytes,
  resolvePath,
  SPACE_RESERVE_BYTES,
  syncToDisk,
} from "./sqlite/disk.ts";
import { asFailure, withFailures } from "./sqlite/sqlite-errors.ts";

export interface BackUpOptions {
  /** Whether a copy that is there already may be replaced. */
  readonly replace?: boolean;
  readonly fileSystem?: FileSystemInfo | undefined;
  /** Asked when the copy is whole, before it gets its name. */
  readonly isWanted?: () => boolean;
}

const MEBIBYTE = 1024 * 1024;

/** Like any reader, but an older file is welcome too: the copy to take is the one from before the upgrade. */
export function openForBackUp(path: string): Connection {
  try {
    return openReader(path);
  } catch (error) {
    if (error instanceof Failure && error.code === "older_warehouse") return connectReader(resolvePath(path));
    throw error;
  }
}

/**
 * A consistent, compact copy, while the writer goes on: it reads one snapshot, so it cannot be starved by commits.
 * The copy is checked, and appears under its name when it is whole. Tells its size.
 */
export function backUp(reader: Connection, given: string, options: BackUpOptions = {}): number {
  const file = withFailures(given, () => resolvePath(given));
  assertUsableName(reader.path, file, options.replace ?? false);
  assertRoom(reader, file, options.fileSystem);
  sweep(file);
  const unfinished = `${file}.unfinished-${process.pid}`;
  try {
    vacuumInto(reader, unfinished, file);
    withFailures(file, () => syncToDisk(unfinished));
    assertWhole(unfinished, file);
    if (options.isWanted?.() === false) throw unwanted(file);
    // Looked at again: the copy may have taken an hour.
    assertUsableName(reader.path, file, options.replace ?? false);
    withFailures(file, () => {
      renameSync(unfinished, file);
      syncToDisk(dirname(file));
    });
    return statSync(file).size;
  } finally {
    removeUnfinished(unfinished);
  }
}

/** Removes what a killed process left of its copy; safe to ask for at any time. */
export function removeUnfinishedOf(file: string, pid: number): void {
  removeUnfinished(`${resolvePath(file)}.unfinished-${pid}`);
}

function removeUnfinished(path: string): void {
  for (const end of ["", "-journal"]) rmSync(path + end, { force: true });
}

function vacuumInto(reader: Connection, unfinished: string, file: string): void {
  reader.database.pragma("query_only = 0");
  try {
    reader.database.prepare("VACUUM INTO ?").run(unfinished);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // Writing the copy may fail too, but only reading finds damage.
    const failure = asFailure(error, /^SQLITE_(CORRUPT|NOTADB|IOERR_READ)/.test(code) ? reader.path : file);
    throw failure instanceof Failure && failure.code === "disk_full"
      ? noRoom(file, "the disk is full")
      : failure;
  } finally {
    reader.database.pragma("query_only = 1");
  }
}

function assertWhole(unfinished: string, file: string): void {
  const copy = connectReader(unfinished);
  try {
    const verdict = withFailures(file, () => copy.database.pragma("integrity_check(1)", { simple: true }));
    if (verdict === "ok") return;
    throw new Failure(`the copy for ${file} is damaged (${String(verdict).split("\n")[0]})`, {
      family: "operator",
      code: "copy_damaged",
      remedy: "check the warehouse with `mds-sync doctor`, and both disks; no copy was written",
    });
  } finally {
    copy.close();
  }
}

/** SQLite would play a log that lies beside the name into the new file, whatever it was the log of. */
function assertUsableName(warehouse: string, file: string, replace: boolean): void {
  const refuse = (message: string, remedy: string): never => {
    throw new Failure(message, { family: "operator", code: "backup_refused", remedy, exit: exitCode.usage });
  };
  if (["", "-wal", "-shm", "-journal", ".lock"].some((end) => file === warehouse + end)) {
    refuse(`${file} is the warehouse itself`, "give the copy another name");
  }
  const found = withFailures(file, () => statSync(file, { throwIfNoEntry: false }));
  if (found && !found.isFile()) refuse(`${file} is not a file`, "give the name of the copy");
  if (found && !replace) refuse(`${file} exists`, "give another name, or --force to replace it");
  const log = ["-wal", "-journal"]
    .map((end) => file + end)
    .find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
  if (log) refuse(`${log} shows that ${file} is in use`, "close what has it open, or give another name");
}

/** The reserve stays free: on the warehouse's own disk the writer stops when it is touched. */
function assertRoom({ database }: Connection, file: string, info?: FileSystemInfo): void {
  const count = (name: string) => Number(database.pragma(name, { simple: true }));
  const size = (count("page_count") - count("freelist_count")) * count("page_size");
  const needed = size + SPACE_RESERVE_BYTES;
  const free = freeBytes(file, info);
  if (free >= needed) return;
  throw noRoom(
    file,
    `only ${Math.floor(free / MEBIBYTE)} MiB are left, ${Math.ceil(needed / MEBIBYTE)} MiB are needed`,
  );
}

function noRoom(file: string, why: string): Failure {
  return new Failure(`no room for the copy ${file}: ${why}`, {
    family: "retry",
    code: "disk_full",
    remedy: "free some space, or copy to another disk; no copy was written",
  });
}

function unwanted(file: string): Failure {
  return new Failure(`nobody waits for the copy ${file} any more`, { family: "retry", code: "stopped" });
}

/** What processes that are gone have left. */
function sweep(file: string): void {
  const prefix = `${basename(file)}.unfinished-`;
  for (const name of withFailures(file, () => readdirSync(dirname(file)))) {
    const pid = name.startsWith(prefix)
      ? Number(name.slice(prefix.length).replace(/-journal$/, ""))
      : Number.NaN;
    if (Number.isInteger(pid) && !isAlive(pid)) rmSync(join(dirname(file), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return pid !== process.pid && !isZombie(pid);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Dead, but nobody has asked how it ended: in a container without an init that can last for ever. */
function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
