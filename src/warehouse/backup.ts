import { readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode, Failure, failureCode } from "../model/failure.ts";
import { openReader } from "./reader.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import {
  createEmptyFile,
  type FileAccess,
  type FileSystemInfo,
  MIN_FREE_BYTES,
  readFreeBytes,
  resolvePath,
  syncToDisk,
} from "./sqlite/disk.ts";
import { toFailure, translateErrors } from "./sqlite/sqlite-errors.ts";

interface BackupOptions {
  /** Whether to replace an existing copy. */
  readonly replace?: boolean;
  readonly fileSystem?: FileSystemInfo | undefined;
  /** The mode and owner of the copy; default: those of the warehouse. */
  readonly access?: FileAccess | undefined;
  /** Called after the copy is checked and before it is renamed into place; `false` discards the copy. */
  readonly shouldFinish?: () => boolean;
}

const MEBIBYTE = 1024 * 1024;

/** Like `openReader`, but accepts a warehouse of an older version: users back up before they upgrade. */
export function openForBackup(path: string): Connection {
  try {
    return openReader(path);
  } catch (error) {
    if (failureCode(error) === "older_warehouse") return connectReader(resolvePath(path));
    throw error;
  }
}

/**
 * Makes a consistent, compact copy while the writer goes on. `VACUUM INTO` reads one snapshot, so commits never restart
 * it. Checks the copy before renaming it into place. Returns its size in bytes.
 */
export function backUp(reader: Connection, given: string, options: BackupOptions = {}): number {
  const file = translateErrors(given, () => resolvePath(given));
  assertUsableDestination(reader.path, file, options.replace ?? false);
  assertSpaceForCopy(reader, file, options.fileSystem);
  removeStalePartialCopies(file);
  const partial = `${file}.unfinished-${process.pid}`;
  try {
    translateErrors(file, () => createEmptyFile(partial, options.access ?? statSync(reader.path)));
    vacuumInto(reader, partial, file);
    translateErrors(file, () => syncToDisk(partial));
    assertIntact(partial, file);
    if (options.shouldFinish?.() === false)
      throw new Failure(`the copy ${file} was cancelled`, { family: "retry", code: "stopped" });
    // Check again: the copy may have taken an hour.
    assertUsableDestination(reader.path, file, options.replace ?? false);
    translateErrors(file, () => {
      renameSync(partial, file);
      syncToDisk(dirname(file));
    });
    return statSync(file).size;
  } finally {
    removePartialCopy(partial);
  }
}

/** Removes the partial copy of a process that was killed; does nothing if there is none. */
export function removePartialCopyOf(file: string, pid: number): void {
  removePartialCopy(`${resolvePath(file)}.unfinished-${pid}`);
}

function removePartialCopy(path: string): void {
  for (const suffix of ["", "-journal"]) rmSync(path + suffix, { force: true });
}

function vacuumInto(reader: Connection, partial: string, file: string): void {
  reader.database.pragma("query_only = 0");
  try {
    reader.database.prepare("VACUUM INTO ?").run(partial);
  } catch (error) {
    const code = errorCode(error);
    // Errors that mean damage come from reading the warehouse, all others from writing the copy.
    const failure = toFailure(error, /^SQLITE_(CORRUPT|NOTADB|IOERR_READ)/.test(code) ? reader.path : file);
    throw failureCode(failure) === "disk_full" ? notEnoughSpace(file, "the disk is full") : failure;
  } finally {
    reader.database.pragma("query_only = 1");
  }
}

function assertIntact(partial: string, file: string): void {
  using copy = connectReader(partial);
  const damage = translateErrors(file, () => copy.findDamage("integrity_check"));
  if (damage === undefined) return;
  throw new Failure(`the copy for ${file} is damaged (${damage})`, {
    code: "copy_damaged",
    remedy: "check the warehouse with `mds-sync doctor`, and both disks; no copy was written",
  });
}

/** Also rejects a destination with a WAL or journal beside it: docs/decisions/wal.md. */
function assertUsableDestination(warehouse: string, file: string, replace: boolean): void {
  const reject = (message: string, remedy: string): never => {
    throw new Failure(message, { code: "backup_refused", remedy });
  };
  if (["", "-wal", "-shm", "-journal", ".lock"].some((suffix) => file === warehouse + suffix)) {
    reject(`${file} is the warehouse itself`, "give the copy another name");
  }
  const found = translateErrors(file, () => statSync(file, { throwIfNoEntry: false }));
  if (found && !found.isFile()) reject(`${file} is not a file`, "give the name of the copy");
  if (found && !replace) reject(`${file} exists`, "give another name, or --force to replace it");
  const journal = ["-wal", "-journal"]
    .map((suffix) => file + suffix)
    .find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
  if (journal)
    reject(`${journal} shows that ${file} is in use`, "close the program that uses it, or give another name");
}

/** Leaves `MIN_FREE_BYTES` free: with less, the writer stops if the copy is on the warehouse's disk. */
function assertSpaceForCopy({ database }: Connection, file: string, info?: FileSystemInfo): void {
  const count = (name: string) => Number(database.pragma(name, { simple: true }));
  const size = (count("page_count") - count("freelist_count")) * count("page_size");
  const needed = size + MIN_FREE_BYTES;
  const free = readFreeBytes(file, info);
  if (free >= needed) return;
  throw notEnoughSpace(
    file,
    `only ${Math.floor(free / MEBIBYTE)} MiB are free, ${Math.ceil(needed / MEBIBYTE)} MiB are needed`,
  );
}

function notEnoughSpace(file: string, why: string): Failure {
  return new Failure(`not enough space for the copy ${file}: ${why}`, {
    code: "disk_full",
    remedy: "free some space, or copy to another disk; no copy was written",
  });
}

/** Removes partial copies of processes that have ended. */
function removeStalePartialCopies(file: string): void {
  const prefix = `${basename(file)}.unfinished-`;
  for (const name of translateErrors(file, () => readdirSync(dirname(file)))) {
    const pid = name.startsWith(prefix)
      ? Number(name.slice(prefix.length).replace(/-journal$/, ""))
      : Number.NaN;
    if (Number.isInteger(pid) && !isAlive(pid)) rmSync(join(dirname(file), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A copy with our own pid is from an earlier process that had the same pid.
    return pid !== process.pid && !isZombie(pid);
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}

/** In a container without an init process nothing reaps zombies. */
function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
