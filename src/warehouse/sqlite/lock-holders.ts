import { readFileSync, statSync } from "node:fs";

/**
 * The pids of other processes that hold a lock on the warehouse: in a read transaction, because of which SQLite cannot truncate the
 * part of the WAL that they still read, and in a write transaction.
 */
export interface LockHolders {
  readonly readers: readonly number[];
  readonly writers: readonly number[];
}

export const noHolders: LockHolders = { readers: [], writers: [] };

/** The bytes of the `-shm` file that SQLite locks (see "WAL-Index File Format"): one for the writer, five for readers. */
const WRITE_LOCK_BYTE = 120;
const READ_LOCK_BYTES = { first: 123, last: 127 };

/** Reads `/proc/locks`; finds no holders if that file is not readable. Leaves out this process. */
export function findLockHolders(path: string): LockHolders {
  const inode = statSync(`${path}-shm`, { throwIfNoEntry: false })?.ino;
  const readers = new Set<number>();
  const writers = new Set<number>();
  if (inode === undefined) return noHolders;
  for (const line of readKernelLocks().split("\n")) {
    // 1: POSIX  ADVISORY  READ 4711 fe:00:16506931 124 124
    const [, , , kind, pid, file, first, last] = line.trim().split(/\s+/);
    if (file?.split(":")[2] !== String(inode) || Number(pid) === process.pid) continue;
    const covers = (from: number, to: number) => Number(first) <= to && Number(last) >= from;
    if (kind === "READ" && covers(READ_LOCK_BYTES.first, READ_LOCK_BYTES.last)) readers.add(Number(pid));
    if (kind === "WRITE" && covers(WRITE_LOCK_BYTE, WRITE_LOCK_BYTE)) writers.add(Number(pid));
  }
  return { readers: [...readers], writers: [...writers] };
}

function readKernelLocks(): string {
  try {
    return readFileSync("/proc/locks", "utf8");
  } catch {
    return "";
  }
}
