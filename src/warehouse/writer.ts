import { mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { Failure } from "../model/failure.ts";
import { MICROS_PER_MS } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Log, silentLog } from "../runtime/log.ts";
import { type Inspection, inspectFile, type WatchedFile, watchFile } from "./integrity.ts";
import { migrate } from "./migrate.ts";
import { recordLoss } from "./salvage.ts";
import { type Connection, connectWriter } from "./sqlite/connection.ts";
import { noteKilled } from "./sqlite/crash-marker.ts";
import {
  assertLocalFileSystem,
  assertSpace,
  type FileSystemInfo,
  fileSystemInfo,
  isSymbolicLink,
  resolvePath,
  SPACE_RESERVE_BYTES,
  syncToDisk,
} from "./sqlite/disk.ts";
import { endSalvage, type SetAside, setAside } from "./sqlite/quarantine.ts";
import { beginWriting, noteEnd } from "./sqlite/shutdown-marker.ts";
import { asFailure, isDamage, isPoison, withFailures } from "./sqlite/sqlite-errors.ts";
import { truncateWal, WalShortener } from "./sqlite/wal.ts";
import { takeWriterLock, type WriterLock } from "./sqlite/writer-lock.ts";
import { Frontier } from "./tables/high-water-marks.ts";
import { Dictionary } from "./tables/key-dictionary.ts";
import { Transaction } from "./tables/transaction.ts";

export interface WarehouseOptions {
  readonly clock: Pick<Clock, "now">;
  readonly log?: Log;
  /** Tests put a full disk or a network mount here. */
  readonly fileSystem?: FileSystemInfo;
  /** A large file that was not closed in order is opened unchecked: the opener checks it beside the work. */
  readonly mayDeferCheck?: boolean;
}

/** In pages of 4 KiB. A WAL this long has taken the space that is always kept free for it. */
const LONGEST_WAL_PAGES = SPACE_RESERVE_BYTES / 4096;

/** The one writer of a warehouse file. Synchronous throughout; lives in the ingest thread. */
export class Warehouse {
  readonly path: string;
  /** What was found at the path and could not be used; it lies under the names given here. */
  readonly setAside: readonly SetAside[];
  readonly connection: Connection;
  readonly #dictionary: Dictionary;
  readonly #frontier: Frontier;
  readonly #clock: Pick<Clock, "now">;
  readonly #fileSystem: FileSystemInfo;
  readonly #lock: WriterLock;
  readonly #file: WatchedFile;
  readonly #epoch: number;
  /** Which file the WAL is. */
  readonly #walInode: number | undefined;
  readonly #wal: WalShortener;
  #isChecked: boolean;
  #damage: string | undefined;
  #inTransaction = false;
  #commits = 0;
  #poison: unknown;

  constructor(parts: {
    connection: Connection;
    lock: WriterLock;
    clock: Pick<Clock, "now">;
    fileSystem: FileSystemInfo;
    inspection: Inspection;
  }) {
    this.connection = parts.connection;
    this.path = parts.connection.path;
    this.setAside = parts.inspection.setAside;
    this.#isChecked = parts.inspection.isChecked;
    this.#dictionary = new Dictionary(parts.connection);
    this.#frontier = new Frontier(parts.connection);
    this.#lock = parts.lock;
    this.#clock = parts.clock;
    this.#fileSystem = parts.fileSystem;
    this.#file = watchFile(this.path);
    this.#epoch = withFailures(this.path, () => raiseEpoch(parts.connection));
    this.#walInode = inodeOf(`${this.path}-wal`);
    this.#wal = new WalShortener(parts.connection);
  }

  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction: all of it is on disk when this returns, or nothing is when it
   * throws. `work` must be synchronous: what an async function does after its first await would escape.
   */
  transaction<T>(work: (transaction: Transaction) => T): T {
    if (this.#inTransaction) throw new Error("a transaction is open already: pass it on instead of nesting");
    this.shortenWal(LONGEST_WAL_PAGES);
    if (this.#poison) throw this.#poison;
    assertSpace(this.path, SPACE_RESERVE_BYTES, this.#fileSystem);
    const { database } = this.connection;
    this.#inTransaction = true;
    let transaction: Transaction | undefined;
    try {
      database.exec("BEGIN IMMEDIATE");
      this.#assertEpoch();
      const memory = { dictionary: this.#dictionary, frontier: this.#frontier };
      transaction = new Transaction(this.connection, memory, this.#clock.now() * MICROS_PER_MS);
      const result = work(transaction);
      if (isThenable(result)) throw new Error("a transaction cannot wait: its work must be synchronous");
      database.exec("COMMIT");
      this.#commits++;
      return result;
    } catch (error) {
      // What was learned in this transaction never came to be.
      this.#dictionary.forget();
      this.#frontier.forget();
      const failure = this.#failure(error);
      // SQLite has rolled back by itself after some errors, a full disk among them.
      if (database.inTransaction) this.#rollback();
      throw failure;
    } finally {
      transaction?.end();
      this.#inTransaction = false;
    }
  }

  /**
   * Runs what is done to the file outside of a transaction: a checkpoint, a check, a look. What SQLite says there is told
   * in the program's terms as well, and a failure after which nothing may be written is remembered until the end.
   */
  guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** To be called after commits, once they are told of: the next one would have to do it. */
  shortenWal(atPages: number): void {
    this.#ifPossible(() => this.#wal.shorten(atPages));
  }

  /** How many transactions have been committed: while it grows, there is room, and nobody else holds the write lock. */
  get commits(): number {
    return this.#commits;
  }

  /** Throws when the file at the path is no longer the one that is open. To be asked each minute. */
  assertFileInPlace(): void {
    this.guard(() => this.#file.assertSame());
  }

  /** False: the file was not closed in order, and whether it is sound is yet to be found out. */
  get isChecked(): boolean {
    return this.#isChecked;
  }

  /** What a check beside the work has found; the next opener sets a damaged file aside. */
  noteCheck(damage: string | undefined): void {
    this.#isChecked = damage === undefined;
    this.#damage = damage;
  }

  /** `isSuspect`: somebody who read the file beside us has met damage. */
  close({ isSuspect = false } = {}): void {
    try {
      // A reader that stays open would leave the WAL as it is.
      this.#ifPossible(() => truncateWal(this.connection));
      this.connection.close();
      // A mark speaks of the file at the path: of one that took its place we know nothing.
      if (this.#file.isSame()) this.#noteEnd(isSuspect || isDamage(this.#poison));
      else this.#takeWalAlong();
    } finally {
      this.#lock.release();
    }
  }

  /** SQLite leaves the WAL of a file that was moved away where it is, and would take it for that of the file in its place. */
  #takeWalAlong(): void {
    if (this.#walInode === undefined || inodeOf(`${this.path}-wal`) !== this.#walInode) return;
    const reason = "the -wal file of a database that was moved away";
    setAside(this.path, reason, this.#clock.now() * MICROS_PER_MS, "wal");
  }

  #noteEnd(isSuspect: boolean): void {
    if (this.#damage !== undefined) noteEnd(this.path, "damaged", { finding: this.#damage });
    else if (isSuspect) noteEnd(this.path, "suspect");
    else if (this.#isChecked && !this.#poison) noteEnd(this.path, "clean", { epoch: this.#epoch });
  }

  /** What SQLite cannot do now is done later, at the latest by the next opener; damage is remembered. */
  #ifPossible(work: () => void): void {
    if (this.#poison) return;
    try {
      this.guard(work);
    } catch (error) {
      if (!(error instanceof Failure || error instanceof Database.SqliteError)) throw error;
    }
  }

  /** The failure that an error means; remembered if nothing may be written after it. */
  #failure(error: unknown): unknown {
    const failure = asFailure(error, this.path);
    if (isPoison(failure)) this.#poison ??= failure;
    return failure;
  }

  #rollback(): void {
    try {
      this.connection.database.exec("ROLLBACK");
    } catch (error) {
      this.#poison ??= asFailure(error, this.path);
    }
  }

  /** The write lock is held here, so an epoch that is ours now is ours at the commit too. */
  #assertEpoch(): void {
    const epoch = this.connection.statement("SELECT epoch FROM warehouse_state").pluck().get();
    if (epoch === this.#epoch) return;
    this.#poison = new Failure(`another mds-sync has become the writer of ${this.path}`, {
      family: "operator",
      code: "writer_replaced",
      remedy: "end this process; it was taken for dead",
    });
    throw this.#poison;
  }
}

/** Takes the lock, looks at the file, migrates, and becomes the writer. */
export function openWarehouse(given: string, options: WarehouseOptions): Warehouse {
  const { clock, log = silentLog, fileSystem = fileSystemInfo, mayDeferCheck = false } = options;
  withFailures(given, () => mkdirSync(dirname(given), { recursive: true }));
  const path = withFailures(given, () => resolvePath(given));
  assertLocalFileSystem(path, fileSystem);
  if (isSymbolicLink(given)) log.warn({ link: given, path }, "the warehouse is a symbolic link");
  const lock = takeWriterLock(path);
  let connection: Connection | undefined;
  try {
    if (lock.killed) noteKilled(path, lock.killed);
    const inspection = inspectFile(path, clock.now() * MICROS_PER_MS, { mayDefer: mayDeferCheck });
    beginWriting(path);
    for (const found of inspection.setAside)
      log.error({ ...found }, "the warehouse could not be used and was set aside");
    if (!statSync(path, { throwIfNoEntry: false })) createFile(path, fileSystem);
    connection = connectWriter(path);
    const opened = connection;
    withFailures(path, () => migrate(opened, { fileSystem }));
    const warehouse = new Warehouse({ connection, lock, clock, fileSystem, inspection });
    for (const found of inspection.setAside) enterLosses(warehouse, found, log);
    withFailures(path, () => endSalvage(path));
    return warehouse;
  } catch (error) {
    connection?.close();
    lock.release();
    throw error;
  }
}

/** What a damaged file says may make no sense: then nothing can be learned from it, and the work must go on. */
function enterLosses(warehouse: Warehouse, found: SetAside, log: Log): void {
  try {
    warehouse.transaction((transaction) => recordLoss(transaction, found));
  } catch (error) {
    if (error instanceof Failure) throw error;
    log.error({ files: found.files, error: String(error) }, "what was lost with a warehouse is not known");
  }
}

/** A new file appears under its name only when it is whole: a crash leaves no empty one that looks like damage. */
function createFile(path: string, fileSystem: FileSystemInfo): void {
  const unfinished = `${path}.new`;
  for (const end of ["", "-wal", "-shm"]) rmSync(unfinished + end, { force: true });
  const connection = connectWriter(unfinished);
  try {
    withFailures(path, () => migrate(connection, { fileSystem }));
  } finally {
    connection.close();
  }
  withFailures(path, () => {
    renameSync(unfinished, path);
    syncToDisk(dirname(path));
  });
}

/** By an amount that no other warehouse is likely to have come to, so that the epoch also tells whose a WAL is. */
function raiseEpoch({ database }: Connection): number {
  return database
    .prepare("UPDATE warehouse_state SET epoch = epoch + 1 + abs(random() % 1000000000) RETURNING epoch")
    .pluck()
    .get() as number;
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value;
}
