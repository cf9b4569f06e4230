import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  type StatsFs,
  statfsSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { exitCode, Failure } from "../../model/failure.ts";
import { withFailures } from "./sqlite-errors.ts";

/** Below this much free space nothing is written: readers, checkpoints and the operator need room to act in. */
export const SPACE_RESERVE_BYTES = 64 * 1024 * 1024;

/** File systems whose locks and shared memory WAL cannot rely on, by their magic number. */
const networkFileSystems = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x517b, "SMB"],
  [0x73757245, "Coda"],
  [0x5346414f, "AFS"],
]);

/** Injected in tests: a full disk and a network mount are hard to come by. */
export type FileSystemInfo = (path: string) => Pick<StatsFs, "type" | "bavail" | "bsize">;

export const fileSystemInfo: FileSystemInfo = (path) => statfsSync(path);

export function freeBytes(path: string, info: FileSystemInfo = fileSystemInfo): number {
  const { bavail, bsize } = withFailures(path, () => info(dirname(path)));
  return Number(bavail) * Number(bsize);
}

/** Throws `disk_full` when fewer than `needed` bytes would be left. */
export function assertSpace(path: string, needed: number, info: FileSystemInfo = fileSystemInfo): void {
  const free = freeBytes(path, info);
  if (free >= needed) return;
  throw new Failure(`only ${megabytes(free)} are left on the disk of ${path}`, {
    family: "retry",
    code: "disk_full",
    remedy: `free some space: ${megabytes(needed)} are needed; the sync resumes by itself`,
  });
}

export function assertLocalFileSystem(path: string, info: FileSystemInfo = fileSystemInfo): void {
  const { type } = withFailures(path, () => info(dirname(path)));
  const name = networkFileSystems.get(Number(type) >>> 0);
  if (name === undefined) return;
  throw new Failure(`${path} lies on a network file system (${name})`, {
    family: "operator",
    code: "network_file_system",
    remedy: "set warehouse.path to a local disk; hand out copies with `mds-sync backup` or `mds-sync export`",
    exit: exitCode.usage,
  });
}

/**
 * The file itself, whatever links lead to it: SQLite puts the WAL beside the file, not beside the link, and two
 * writers that came by two links must meet at one lock.
 */
export function resolvePath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const directory = dirname(path);
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : path;
}

export function isSymbolicLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Returns once the file, or what a directory says of the names in it, is on the disk. Not for a database that is open. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)} MiB`;
}

/** Where SQLite puts what a large sort cannot keep in memory, after what the environment names. */
const usual = ["/var/tmp", "/usr/tmp", "/tmp", "."];

/**
 * Sees to it that SQLite finds a place for its temporary files: in a container whose root cannot be written, the folder of
 * the warehouse may be all there is. SQLite looks at the environment once, and a thread's environment is its own: to be
 * called in the main thread, before anything is opened.
 */
export function makeRoomForTemporaryFiles(path: string, env: NodeJS.ProcessEnv = process.env): void {
  const named = [env.SQLITE_TMPDIR, env.TMPDIR].filter((folder) => folder !== undefined);
  if (![...named, ...usual].some(isWritable)) env.SQLITE_TMPDIR = dirname(resolve(path));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
