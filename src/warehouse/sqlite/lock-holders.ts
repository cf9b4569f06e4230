import { readFileSync, statSync } from "node:fs";

/** Which other processes have the warehouse locked, by their ids. */
export interface LockHolders {
  /** In a read transaction: the WAL cannot shrink past what they see. */
  readonly readers: readonly number[];
  /** In a write transaction. */
  readonly writers: readonly number[];
}

/** Bytes of the `-shm` file that SQLite locks, from its description of the WAL index: one to write, five to read. */
const WRITE_BYTE = 120;
const READ_BYTES = { first: 123, last: 127 };

/** Read from the kernel's list of locks; empty where it cannot be read. This process is left out: who asks knows of it. */
export function lockHolders(path: string): LockHolders {
  const inode = statSync(`${path}-shm`, { throwIfNoEntry: false })?.ino;
  const readers = new Set<number>();
  const writers = new Set<number>();
  if (inode === undefined) return { readers: [], writers: [] };
  for (const line of readLocks().split("\n")) {
    // 1: POSIX  ADVISORY  READ 4711 fe:00:16506931 124 124
    const [, , , kind, pid, file, first, last] = line.trim().split(/\s+/);
    if (file?.split(":")[2] !== String(inode) || Number(pid) === process.pid) continue;
    const covers = (from: number, to: number) => Number(first) <= to && Number(last) >= from;
    if (kind === "READ" && covers(READ_BYTES.first, READ_BYTES.last)) readers.add(Number(pid));
    if (kind === "WRITE" && covers(WRITE_BYTE, WRITE_BYTE)) writers.add(Number(pid));
  }
  return { readers: [...readers], writers: [...writers] };
}

function readLocks(): string {
  try {
    return readFileSync("/proc/locks", "utf8");
  } catch {
    return "";
  }
}
