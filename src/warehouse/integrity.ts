import { closeSync, existsSync, openSync, readdirSync, readlinkSync, readSync, statSync } from "node:fs";
import { Failure, failureCode } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { APPLICATION_ID, findPendingMigrations } from "./migrate.ts";
import { type Connection, openForInspection } from "./sqlite/connection.ts";
import { assertFreeSpace, assertRegularFile, type FileSystemInfo, MIN_FREE_BYTES } from "./sqlite/disk.ts";
import { type QuarantinedFiles, quarantine } from "./sqlite/quarantine.ts";
import { expectedEpochOfNewWal, readLastShutdown } from "./sqlite/shutdown-marker.ts";
import { toFailure, translateErrors } from "./sqlite/sqlite-errors.ts";
import { readWalBytes } from "./sqlite/wal.ts";

interface InspectionOptions {
  /** Whether a large file may be checked later, in the background. */
  readonly mayDeferCheck?: boolean;
  /** Whether there was no warehouse: an empty file is then used as it is. */
  readonly isNew?: boolean;
  readonly fileSystem?: FileSystemInfo;
}

export interface InspectionResult {
  /** Damaged files that were found at the path. */
  readonly quarantined: readonly QuarantinedFiles[];
  /** False: the file is too large to check before the first write, so its integrity is unknown. */
  readonly isChecked: boolean;
}

/**
 * A check reads the whole file, at about 100 MB per second. A larger file is checked in the background if the caller
 * allows it.
 */
const MAX_IMMEDIATE_CHECK_BYTES = 64 * 1024 * 1024;

/** Files that only a writer leaves beside its warehouse; other programs have a `.lock` too. */
const ownSuffixes = [".end", ".writer", ".crash"];

/**
 * Whether there was a warehouse at the path. Throws for a file of another kind: only a warehouse is ever quarantined. Call it
 * before the writer lock, which creates files beside it.
 */
export function wasWarehouse(path: string): boolean {
  assertRegularFile(path);
  if (ownSuffixes.some((suffix) => existsSync(path + suffix))) return true;
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined && readWalBytes(path) > 0) throw notAWarehouse(`${path}-wal`);
  if (!size) return false;
  try {
    withInspection(path, findPendingMigrations);
    return true;
  } catch (error) {
    const failure = toFailure(error, path);
    if (failureCode(failure) !== "db_corrupt") throw failure;
    if (hasWarehouseHeader(path)) return true;
    throw notAWarehouse(path);
  }
}

function withInspection<T>(path: string, read: (reader: Connection) => T): T {
  using reader = openForInspection(path);
  return read(reader);
}

/** Only for a file that SQLite cannot read: closing a descriptor drops the locks that this process has on the file. */
function hasWarehouseHeader(path: string): boolean {
  const header = Buffer.alloc(72);
  const descriptor = openSync(path, "r");
  try {
    readSync(descriptor, header, 0, header.length, 0);
  } finally {
    closeSync(descriptor);
  }
  return (
    header.toString("latin1", 0, 16) === "SQLite format 3\0" && header.readInt32BE(68) === APPLICATION_ID
  );
}

function notAWarehouse(file: string): Failure {
  return new Failure(`${file} is not a file of mds-sync`, {
    code: "not_a_warehouse",
    remedy: "set warehouse.path to another file; this one was not changed",
  });
}

/**
 * Quarantines a damaged file before the first write; rejects files of newer versions and other programs. Opens the file
 * only through SQLite: closing any other descriptor would drop the POSIX locks that this process has on it.
 */
export function inspectFile(path: string, now: Micros, options: InspectionOptions = {}): InspectionResult {
  const quarantined: QuarantinedFiles[] = [];
  const setAside = (reason: string, which: "all" | "wal") =>
    translateErrors(path, () => quarantined.push(quarantine(path, reason, now, which)));
  if (hasForeignWal(path)) setAside("a -wal file of another database", "wal");
  const found = assessFile(path, options);
  if (!("damage" in found)) return { quarantined, ...found };
  // The new file gets the mode of this one, so this one stays until there is space for both.
  assertFreeSpace(path, MIN_FREE_BYTES, options.fileSystem);
  setAside(found.damage, "all");
  return { quarantined, isChecked: true };
}

/** Describes the damage of the file, if there is any. Throws for one that we must not write (newer, or another program's). */
function assessFile(
  path: string,
  { mayDeferCheck = false, isNew = false }: InspectionOptions,
): Omit<InspectionResult, "quarantined"> | { readonly damage: string } {
  const sound = { isChecked: true };
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined)
    return readWalBytes(path) > 0 ? { damage: "a -wal file without its database" } : sound;
  if (size === 0) return isNew ? sound : { damage: "the file is empty" };
  const lastShutdown = readLastShutdown(path);
  if (lastShutdown.kind === "damaged") return { damage: lastShutdown.finding };
  // A file that was closed normally and is unchanged since is trusted without a check.
  const isTrusted = lastShutdown.kind === "clean";
  const isDeferred = mayDeferCheck && lastShutdown.kind === "unclean" && size > MAX_IMMEDIATE_CHECK_BYTES;
  try {
    const damage = withInspection(path, (reader) => {
      findPendingMigrations(reader);
      return isTrusted || isDeferred ? undefined : reader.findDamage();
    });
    return damage === undefined ? { isChecked: !isDeferred } : { damage: `quick_check: ${damage}` };
  } catch (error) {
    const failure = toFailure(error, path);
    if (failure instanceof Failure && failure.code === "db_corrupt") return { damage: failure.message };
    throw failure;
  }
}

/**
 * Whether the WAL beside the file belongs to another database: docs/decisions/wal.md. Then the epoch that is read through both is
 * another one, or together they are not a valid warehouse.
 */
function hasForeignWal(path: string): boolean {
  const epoch = expectedEpochOfNewWal(path);
  if (epoch === undefined) return false;
  try {
    return epoch !== withInspection(path, (file) => file.findValue("SELECT epoch FROM warehouse_state"));
  } catch (error) {
    const failure = toFailure(error, path);
    if (failure instanceof Failure && failure.code !== "db_corrupt") throw failure;
    return true;
  }
}

export type FileIdentity = ReturnType<typeof captureFileIdentity>;

/** Detects that another file has replaced the opened one at its path. */
export function captureFileIdentity(path: string) {
  const opened = statSync(path);
  const isSame = (file: string) => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.dev === opened.dev && found.ino === opened.ino && found.nlink > 0;
  };
  return {
    access: opened,
    isInPlace: () => isSame(path),
    /** The present name of the open file; undefined if it was deleted, or if the system does not say. */
    findMoved(): string | undefined {
      const folder = "/proc/self/fd";
      if (!existsSync(folder)) return undefined;
      const links = readdirSync(folder).map((name) => `${folder}/${name}`);
      const link = links.find(isSame);
      return link && readlinkSync(link);
    },
  };
}
