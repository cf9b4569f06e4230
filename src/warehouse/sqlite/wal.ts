import { statSync } from "node:fs";
import { BUSY_TIMEOUT_MS, type Connection } from "./connection.ts";
import { type LockHolders, lockHolders } from "./lock-holders.ts";
import { withFailures } from "./sqlite-errors.ts";

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

/** Moves the WAL into the database whenever it is long, as far as readers let it; waits for nobody. */
export class WalShortener {
  readonly #connection: Connection;
  /** How long it was when a reader was in the way last: to try means to read all of it. */
  #stuckAt = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  shorten(atPages: number): void {
    const { log, checkpointed } = this.#checkpoint("NOOP");
    const isNoLonger = log >= this.#stuckAt && log < this.#stuckAt + atPages;
    if (log - checkpointed < atPages || isNoLonger) return;
    const after = this.#checkpoint("PASSIVE");
    this.#stuckAt = after.checkpointed < after.log ? after.log : 0;
  }

  #checkpoint(mode: "NOOP" | "PASSIVE"): { readonly log: number; readonly checkpointed: number } {
    const [wal] = this.#connection.statement(`PRAGMA wal_checkpoint(${mode})`).all() as {
      log: number;
      checkpointed: number;
    }[];
    return wal ?? { log: 0, checkpointed: 0 };
  }
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
