import { statSync } from "node:fs";
import { BUSY_TIMEOUT_MS, type Connection } from "./connection.ts";
import { type LockHolders, lockHolders } from "./lock-holders.ts";
import { withFailures } from "./sqlite-failure.ts";

export interface Checkpoint {
  readonly walBytes: number;
  /** False: a reader still needs the WAL, and it keeps growing until that reader ends. */
  readonly isTruncated: boolean;
  readonly holders: LockHolders;
}

export function walBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** The size of the database file itself. */
export function warehouseBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** A WAL of so many pages is worth the two waits for the disk that moving it costs. */
const LONG_WAL_PAGES = 2_000;

/** Moves a long WAL into the database, as far as readers let it, and waits for nobody. */
export function shortenWal({ database }: Connection): void {
  const [wal] = database.pragma("wal_checkpoint(NOOP)") as { log: number; checkpointed: number }[];
  if (wal && wal.log - wal.checkpointed >= LONG_WAL_PAGES) database.pragma("wal_checkpoint(PASSIVE)");
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
