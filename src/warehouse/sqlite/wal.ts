import { rmSync, statSync } from "node:fs";
import { BUSY_TIMEOUT_MS, type Connection, JOURNAL_SIZE_LIMIT_BYTES } from "./connection.ts";
import { createEmptyFile } from "./disk.ts";
import { findLockHolders, noHolders } from "./lock-holders.ts";
import { translateErrors } from "./sqlite-errors.ts";

export function readWalBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** The files that SQLite keeps beside a database in WAL mode. */
export const walSuffixes = ["-wal", "-shm"] as const;

/** Removes a closed database that nobody needs. */
export function removeDatabase(path: string): void {
  for (const suffix of ["", ...walSuffixes]) rmSync(path + suffix, { force: true });
}

/**
 * Creates empty `-wal` and `-shm` files beside a closed database. SQLite removes both on close, and a user who may not
 * create them again (on a read-only mount, a snapshot, as another user) could not read the database.
 */
export function createEmptyWalFiles(path: string): void {
  const access = statSync(path);
  for (const suffix of walSuffixes) createEmptyFile(path + suffix, access);
}

/** The size of the database file without its WAL. */
export function readWarehouseBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Checkpoints a long WAL as far as readers allow, without waiting for them. */
export class WalCheckpointer {
  readonly #connection: Connection;
  /**
   * The WAL's length when a reader last blocked a checkpoint. Every attempt reads the whole WAL, so retry only after
   * growth.
   */
  #blockedAtPages = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  checkpoint(minPages: number): void {
    const { log, checkpointed } = this.#runCheckpoint("NOOP");
    const hasNotGrown = log >= this.#blockedAtPages && log < this.#blockedAtPages + minPages;
    if (log - checkpointed < minPages || hasNotGrown) return;
    const after = this.#runCheckpoint("PASSIVE");
    this.#blockedAtPages = after.checkpointed < after.log ? after.log : 0;
  }

  /** Returns the length of the WAL, and how much of it is checkpointed; in pages. */
  #runCheckpoint(mode: "NOOP" | "PASSIVE") {
    const sql = `PRAGMA wal_checkpoint(${mode})`;
    const wal = this.#connection.findRow<{ readonly log: number; readonly checkpointed: number }>(sql);
    return wal ?? { log: 0, checkpointed: 0 };
  }
}

/** Checkpoints the whole WAL and truncates it to zero bytes. If a reader blocks that, reports the lock holders. */
export function truncateWal(connection: Connection) {
  const { database, path } = connection;
  const isBusy = translateErrors(path, () => {
    // Do not wait for readers: one may stay for an hour, and the writer has other work.
    database.pragma("busy_timeout = 0");
    try {
      // `simple` returns the first column: `busy`.
      return database.pragma("wal_checkpoint(TRUNCATE)", { simple: true });
    } finally {
      database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  });
  const isTruncated = isBusy === 0;
  /** Not truncated: a reader still uses the WAL, which grows until that reader ends; or it is short. */
  return {
    walBytes: readWalBytes(path),
    isTruncated,
    holders: isTruncated ? noHolders : findLockHolders(path),
  };
}

/**
 * Truncates a WAL that has grown because a reader blocked its checkpoints. A shorter one is overwritten in place: each checkpoint
 * writes every page that has changed since the last, so fewer checkpoints write less.
 */
export function truncateLongWal(connection: Connection): ReturnType<typeof truncateWal> {
  const walBytes = readWalBytes(connection.path);
  if (walBytes >= JOURNAL_SIZE_LIMIT_BYTES) return truncateWal(connection);
  return { walBytes, isTruncated: false, holders: noHolders };
}
