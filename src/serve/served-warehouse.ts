import { statSync } from "node:fs";
import { MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { openReader } from "../warehouse/reader.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { readClockSkew } from "../warehouse/tables/warehouse-state.ts";

/** How often to look whether another file has taken the place of the warehouse, as `restore` does. */
const FILE_CHECK_INTERVAL_MS = 1_000;
/** For pages of history: the file system caches the rest. */
const CACHE_KIB = 32 * 1024;

/** What every feed of a served warehouse needs. */
export interface ServeContext {
  readonly warehouse: ServedWarehouse;
  readonly clock: Clock;
  readonly log: Log;
}

/** The warehouse as `serve` reads it: it may appear later, be replaced, and be written by another process. */
export class ServedWarehouse {
  readonly path: string;
  readonly #clock: Clock;
  #connection: Connection | undefined;
  #fileId = "";
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
  }

  /** Throws a Failure while the file does not exist or cannot be read. */
  get connection(): Connection {
    const now = this.#clock.monotonic();
    if (this.#connection && now - this.#checkedAt < FILE_CHECK_INTERVAL_MS) return this.#connection;
    this.#checkedAt = now;
    const fileId = readFileId(this.path);
    if (this.#connection && fileId === this.#fileId) return this.#connection;
    this.close();
    this.#connection = openReader(this.path, CACHE_KIB);
    this.#fileId = fileId;
    return this.#connection;
  }

  /** Changes with every commit of another connection. */
  get dataVersion(): string {
    const { connection } = this;
    return `${this.#fileId} ${connection.value<number>("PRAGMA data_version")}`;
  }

  /** Now by the service's clock. */
  get now(): Micros {
    return Math.floor(this.#clock.now()) * MICROS_PER_MS + readClockSkew(this.connection);
  }

  /** Runs `read` on one state of the warehouse: rows and ledger must fit together. */
  snapshot<T>(read: (connection: Connection) => T): T {
    const { connection } = this;
    return connection.database.transaction(() => read(connection))();
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

function readFileId(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.dev} ${stats.ino}` : "";
}
