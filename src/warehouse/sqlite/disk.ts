import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  type StatsFs,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode, Failure } from "../../model/failure.ts";
import { translateErrors } from "./sqlite-errors.ts";

/** With less free space the writer stops: readers, checkpoints and the operator still need some. */
export const MIN_FREE_BYTES = 64 * 1024 * 1024;

/** File systems, by magic number, on which a warehouse cannot be: docs/decisions/sqlite.md. */
const networkFileSystems = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x517b, "SMB"],
  [0x73757245, "Coda"],
  [0x5346414f, "AFS"],
]);

/** Injectable, so that tests can simulate a full disk or a network mount. */
export type FileSystemInfo = (path: string) => Pick<StatsFs, "type" | "bavail" | "bsize">;

export const fileSystemInfo: FileSystemInfo = (path) => statfsSync(path);

export function readFreeBytes(path: string, info: FileSystemInfo = fileSystemInfo): number {
  const { bavail, bsize } = translateErrors(path, () => info(dirname(path)));
  return Number(bavail) * Number(bsize);
}

/** What this process has written to disks; 0 where the system does not count it. */
export function readWrittenBytes(): number {
  try {
    return Number(/^write_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

export function assertFreeSpace(path: string, needed: number, info: FileSystemInfo = fileSystemInfo): void {
  const free = readFreeBytes(path, info);
  if (free >= needed) return;
  throw new Failure(`only ${formatMebibytes(free)} are free on the disk of ${path}`, {
    code: "disk_full",
    remedy: `free some space: ${formatMebibytes(needed)} are needed; the sync resumes automatically`,
  });
}

export function assertLocalFileSystem(path: string, info: FileSystemInfo = fileSystemInfo): void {
  const { type } = translateErrors(path, () => info(dirname(path)));
  const name = networkFileSystems.get(Number(type) >>> 0);
  if (name === undefined) return;
  throw new Failure(`${path} is on a network file system (${name})`, {
    code: "network_file_system",
    remedy: "set warehouse.path to a local disk; share copies made by `mds-sync backup` or `mds-sync export`",
  });
}

/**
 * Resolves symbolic links: SQLite puts the WAL beside the real file, and two writers that use different links must
 * contend for the same lock.
 */
export function resolvePath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const directory = dirname(path);
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : path;
}

/** Like `mkdir -p`. Node's own recursive `mkdirSync` never returns under /proc, where creating a folder fails with ENOENT. */
export function createFolder(path: string): void {
  const isFolder = () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isFolder()) return;
  if (!existsSync(dirname(path))) createFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!isFolder()) throw error;
  }
}

/** Throws for a folder, a device and a pipe; not if there is nothing. */
export function assertRegularFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() ?? true) return;
  throw new Failure(`${path} is not a file`, {
    code: "not_a_warehouse",
    remedy: "set warehouse.path to the SQLite file",
  });
}

export type FileAccess = Pick<Stats, "mode" | "uid" | "gid">;

/**
 * Creates a file with this mode and, as root, this owner, as SQLite does for a WAL; an existing one keeps its content. Never
 * follows a link.
 */
export function createEmptyFile(file: string, { mode, uid, gid }: FileAccess): void {
  const { O_WRONLY, O_CREAT, O_NOFOLLOW } = constants;
  const descriptor = openSync(file, O_WRONLY | O_CREAT | O_NOFOLLOW, mode & 0o777);
  try {
    fchmodSync(descriptor, mode & 0o777);
    if (process.geteuid?.() === 0) fchownSync(descriptor, uid, gid);
  } catch {
    // Some file systems have neither modes nor owners.
  } finally {
    closeSync(descriptor);
  }
}

/** Writes a small file with one rename. Removes a link at its temporary name instead of following it. */
export function replaceFile(file: string, text: string): void {
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, text, { flag: "wx", flush: true });
  renameSync(unfinished, file);
}

/** What a small file says; undefined: it cannot be read. */
export function readJsonFile<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

/** Why no file can be created beside the warehouse, as a stop and the next start must: its open files do not show it. */
export function findFolderFailure(path: string): Failure | undefined {
  const probe = `${path}.probe`;
  try {
    rmSync(probe, { force: true });
    closeSync(openSync(probe, "wx"));
    rmSync(probe);
    return undefined;
  } catch (error) {
    return new Failure(`no file can be created in ${dirname(path)} (${errorCode(error)})`, {
      code: "db_not_writable",
      remedy: "let this user write to that folder: without it the next start fails",
      cause: error,
    });
  }
}

export function isSymbolicLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/**
 * Fsyncs a file or a directory. Never use it on an open database: closing the descriptor drops the POSIX locks that
 * SQLite holds on it in this process.
 */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function formatMebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)} MiB`;
}

/** Where SQLite looks for a temporary folder after the environment variables. */
const defaultTempFolders = ["/var/tmp", "/usr/tmp", "/tmp", "."];

/**
 * Lets SQLite put temporary files beside the warehouse if no other folder is writable, as in some containers. Call it
 * in the main thread before the first open: SQLite reads the environment once, and worker threads have a copy.
 */
export function ensureTempFolder(path: string, env: NodeJS.ProcessEnv = process.env): void {
  const configured = [env.SQLITE_TMPDIR, env.TMPDIR].filter((folder) => folder !== undefined);
  if (![...configured, ...defaultTempFolders].some(isWritable)) env.SQLITE_TMPDIR = dirname(resolve(path));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
