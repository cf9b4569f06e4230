import { readFileSync, statSync } from "node:fs";
import { BUSY_TIMEOUT_MS, type Connection } from "./connection.ts";
import { withFailures } from "./sqlite-failure.ts";

/** Who has the warehouse locked, by process id. */
export interface LockHolders {
  /** In a read transaction: the WAL cannot shrink past what they see. */
  readonly readers: readonly number[];
  /** In a write transaction. */
  readonly writers: readonly number[];
}

export interface Checkpoint {
  readonly walBytes: number;
  /** False: a reader still needs the WAL, and it keeps growing until that reader ends. */
  readonly isTruncated: boolean;
  readonly holders: LockHolders;
}

/** Bytes of the `-shm` file that SQLite locks, from its description of the WAL index: one to write, five to read. */
const WRITE_BYTE = 120;
const READ_BYTES = { first: 123, last: 127 };

export function walBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** The size of the database file itself. */
export function warehouseBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Moves the WAL into the database and cuts it to nothing, unless a reader is in the way; then says which. */
export function truncateWal(connection: Connection): Checkpoint {
  const { database, path } = connection;
  const [result] = withFailures(path, () => {
    // A reader that stays for an hour is not worth waiting for, and the writer has other work.
    database.pragma("busy_timeout = 0");
    try {
      return database.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
    } finally {
      database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  });
  const isTruncated = result?.busy === 0;
  return {
    walBytes: walBytes(path),
    isTruncated,
    holders: isTruncated ? { readers: [], writers: [] } : lockHolders(path),
  };
}

/** Read from the kernel's list of locks; empty where it cannot be read. This process may be among them. */
export function lockHolders(path: string): LockHolders {
  const inode = statSync(`${path}-shm`, { throwIfNoEntry: false })?.ino;
  const readers = new Set<number>();
  const writers = new Set<number>();
  if (inode === undefined) return { readers: [], writers: [] };
  for (const line of readLocks().split("\n")) {
    // 1: POSIX  ADVISORY  READ 4711 fe:00:16506931 124 124
    const [, , , kind, pid, file, first, last] = line.trim().split(/\s+/);
    if (file?.split(":")[2] !== String(inode)) continue;
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
