import { existsSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import type { CommitNews } from "../model/answers/ticks.ts";
import { Failure, failureCode } from "../model/failure.ts";
import { MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Log, silentLog } from "../runtime/log.ts";
import { backUp } from "./backup.ts";
import {
  captureFileIdentity,
  type FileIdentity,
  type InspectionResult,
  inspectFile,
  wasWarehouse,
} from "./integrity.ts";
import { describeUpgrade, migrate, type Upgrade } from "./migrate.ts";
import { type Connection, connectWriter } from "./sqlite/connection.ts";
import { recordKilledWriter } from "./sqlite/crash-marker.ts";
import {
  assertFreeSpace,
  assertLocalFileSystem,
  createEmptyFile,
  createFolder,
  type FileSystemInfo,
  fileSystemInfo,
  isSymbolicLink,
  MIN_FREE_BYTES,
  resolvePath,
  syncToDisk,
} from "./sqlite/disk.ts";
import { findAsideName, type QuarantinedFiles, quarantine } from "./sqlite/quarantine.ts";
import { removeShutdownMarker, writeShutdownMarker } from "./sqlite/shutdown-marker.ts";
import { isCorruption, isFatal, toFailure, translateErrors } from "./sqlite/sqlite-errors.ts";
import { createEmptyWalFiles, removeDatabase, truncateWal, WalCheckpointer } from "./sqlite/wal.ts";
import { acquireWriterLock, type WriterLock } from "./sqlite/writer-lock.ts";
import { HighWaterMarks } from "./tables/high-water-marks.ts";
import { Journal } from "./tables/journal.ts";
import { KeyDictionary } from "./tables/key-dictionary.ts";
import { RowParts } from "./tables/row-parts.ts";
import { beginCommits, Commits, Transaction, type WriterMemory } from "./tables/transaction.ts";

export interface WriterOptions {
  /** This machine's, which dates commits. */
  readonly clock: Pick<Clock, "now">;
  /** The service's time in milliseconds, which records are compared with. Default: that of the clock. */
  readonly serviceNow?: (() => number) | undefined;
  readonly log?: Log;
  /** Tests simulate a full disk or a network mount with it. */
  readonly fileSystem?: FileSystemInfo;
  /** Opens a large file without a check if it was not closed normally: the caller checks it in the background. */
  readonly mayDeferCheck?: boolean;
  /** Called before an older warehouse is upgraded. */
  readonly onUpgrade?: ((upgrade: Upgrade) => void) | undefined;
  /** Called after each commit that changed rows or coverage. */
  readonly onCommit?: ((news: CommitNews) => void) | undefined;
}

/** Adds a random amount, so that no other warehouse has the same epoch: docs/decisions/wal.md. */
const advanceEpochSql =
  "UPDATE warehouse_state SET epoch = epoch + 1 + abs(random() % 1000000000) RETURNING epoch";

/** In pages of 4 KiB. A longer WAL would exceed the disk space that is reserved for it. */
const MAX_WAL_PAGES = MIN_FREE_BYTES / 4096;

/** The only writer of a warehouse file. All methods are synchronous; the ingest thread owns it. */
export class WarehouseWriter {
  readonly path: string;
  /** Damaged files that were found at the path, under their new names. */
  readonly quarantined: readonly QuarantinedFiles[];
  readonly connection: Connection;
  readonly #memory: WriterMemory;
  readonly #options: WriterOptions;
  readonly #lock: WriterLock;
  readonly #fileIdentity: FileIdentity;
  readonly #epoch: number;
  readonly #walInode: number | undefined;
  readonly #walCheckpointer: WalCheckpointer;
  /** False: the file was not closed normally, and its background check is pending. */
  isChecked: boolean;
  #damage: string | undefined;
  #inTransaction = false;
  #isGrouping = false;
  /** Undoes what open transactions changed in memory. */
  readonly #undoOnRollback: (() => void)[] = [];
  /** While this grows, the disk has space and no other program holds the write lock. */
  commitCount = 0;
  #fatalFailure: unknown;

  constructor(
    connection: Connection,
    lock: WriterLock,
    { quarantined, isChecked }: InspectionResult,
    options: WriterOptions,
  ) {
    this.connection = connection;
    this.path = connection.path;
    this.quarantined = quarantined;
    this.isChecked = isChecked;
    this.#memory = {
      dictionary: new KeyDictionary(connection),
      highWaterMarks: new HighWaterMarks(connection),
      journal: new Journal(connection),
      commits: new Commits(connection),
      parts: new RowParts(connection),
    };
    this.#lock = lock;
    this.#options = options;
    this.#fileIdentity = captureFileIdentity(this.path);
    this.#epoch = translateErrors(this.path, () => connection.value<number>(advanceEpochSql));
    translateErrors(this.path, () => beginCommits(connection, this.#now()));
    this.#walInode = readInode(`${this.path}-wal`);
    this.#walCheckpointer = new WalCheckpointer(connection);
  }

  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction: everything is on disk when this returns, nothing when it throws.
   * `work` must be synchronous: an async function would write after the commit.
   */
  transaction<T>(work: (transaction: Transaction) => T): T {
    if (this.#inTransaction) throw new Error("a transaction is already open: pass it on instead of nesting");
    return this.#isGrouping ? this.#run(work) : this.#commit(() => this.#run(work));
  }

  /** Commits all transactions that `work` runs together, with one sync: all of them, or none if it throws. */
  groupTransactions<T>(work: () => T): T {
    this.#isGrouping = true;
    try {
      return this.#commit(work);
    } finally {
      this.#isGrouping = false;
    }
  }

  #commit<T>(work: () => T): T {
    this.checkpointWal(MAX_WAL_PAGES);
    if (this.#fatalFailure) throw this.#fatalFailure;
    this.#assertFreeSpace();
    const { database } = this.connection;
    const { journal, commits } = this.#memory;
    try {
      database.exec("BEGIN IMMEDIATE");
      this.#assertEpoch();
      const now = this.#now();
      commits.begin(now);
      const result = work();
      const news = journal.write();
      if (news || commits.isStamped) commits.write(this.#readServiceTime() - now);
      database.exec("COMMIT");
      this.commitCount++;
      if (news) this.#options.onCommit?.(news);
      return result;
    } catch (error) {
      // The caches may contain keys and marks that are rolled back.
      for (const part of Object.values(this.#memory)) part.clear();
      for (const undo of this.#undoOnRollback) undo();
      const failure = this.#toFailure(error);
      // After some errors, such as a full disk, SQLite has already rolled back.
      if (database.inTransaction) this.#rollback();
      throw failure;
    } finally {
      this.#undoOnRollback.length = 0;
    }
  }

  #now(): Micros {
    return Math.round(this.#options.clock.now() * MICROS_PER_MS);
  }

  #readServiceTime(): Micros {
    const { clock, serviceNow } = this.#options;
    return Math.round((serviceNow?.() ?? clock.now()) * MICROS_PER_MS);
  }

  #assertFreeSpace(): void {
    try {
      assertFreeSpace(this.path, MIN_FREE_BYTES, this.#options.fileSystem);
    } catch (error) {
      // The whole folder may be gone.
      this.assertFileInPlace();
      throw error;
    }
  }

  #run<T>(work: (transaction: Transaction) => T): T {
    const now = this.#readServiceTime();
    const transaction = new Transaction(this.connection, this.#memory, this.#undoOnRollback, now);
    this.#inTransaction = true;
    try {
      const result = work(transaction);
      const isAsync = typeof (result as PromiseLike<T> | undefined)?.then === "function";
      if (isAsync) throw new Error("the work of a transaction must be synchronous");
      return result;
    } finally {
      transaction.end();
      this.#inTransaction = false;
    }
  }

  /**
   * Runs work outside a transaction (a checkpoint, a check, a read) and remembers a failure that forbids further
   * writes.
   */
  runGuarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#toFailure(error);
    }
  }

  /**
   * Checkpoints a WAL with `minPages` new pages or more. Call it after a commit was answered: it would delay the
   * answer.
   */
  checkpointWal(minPages: number): void {
    this.#bestEffort(() => this.#walCheckpointer.checkpoint(minPages));
  }

  /** Throws when another file, or none, is in the place of the open one. Called every minute. */
  assertFileInPlace(): void {
    if (this.#fatalFailure) throw this.#fatalFailure;
    if (!this.#fileIdentity.isInPlace()) throw this.#toFailure(this.#saveOpenFile());
  }

  /** Copies a deleted file while this connection keeps its content. Without space for the copy, the caller retries. */
  #saveOpenFile(): Failure {
    const { path } = this;
    const gone = `${path} was ${existsSync(path) ? "replaced" : "removed"} while it was open`;
    const describe = (message: string, remedy: string) =>
      new Failure(message, { code: "db_replaced", remedy });
    const moved = this.#fileIdentity.findMoved();
    if (moved !== undefined)
      return describe(gone, `it is now ${moved}, with the data written since: move it back, then restart`);
    try {
      translateErrors(path, () => createFolder(dirname(path)));
      const copy = findAsideName(path, this.#options.clock.now() * MICROS_PER_MS);
      backUp(this.connection, copy, {
        access: this.#fileIdentity.access,
        fileSystem: this.#options.fileSystem,
      });
      return describe(
        `${gone}: its content is in ${copy}`,
        `stop the daemon, then \`mds-sync restore ${copy}\``,
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (failureCode(error) !== "disk_full")
        return describe(`${gone}, and no copy could be made (${reason})`, "restart, or restore a backup");
      const remedy = "free some space: the copy is made then; a stop before loses what only this file has";
      return new Failure(`${gone}, and ${reason}`, { code: "disk_full", remedy });
    }
  }

  /** Records the result of a background check; the next start quarantines a damaged file. */
  recordCheckResult(damage: string | undefined): void {
    this.isChecked = damage === undefined;
    this.#damage = damage;
  }

  /** `isSuspect`: another connection met corruption while reading. */
  close({ isSuspect = false } = {}): void {
    translateErrors(this.path, () => this.#close(isSuspect));
  }

  #close(isSuspect: boolean): void {
    try {
      // SQLite truncates the WAL on close only if no reader is open.
      this.#bestEffort(() => truncateWal(this.connection));
      this.connection.close();
      // The marker describes the file at the path: write none for a file that replaced ours.
      if (this.#fileIdentity.isInPlace())
        this.#writeShutdownMarker(isSuspect || isCorruption(this.#fatalFailure));
      else this.#quarantineLeftoverWal();
      this.#bestEffort(() => createEmptyWalFiles(this.path));
    } finally {
      this.#lock.release();
    }
  }

  /** SQLite leaves the WAL of a moved database at the old path: docs/decisions/wal.md. */
  #quarantineLeftoverWal(): void {
    if (this.#walInode === undefined || readInode(`${this.path}-wal`) !== this.#walInode) return;
    const reason = "the -wal file of a database that was moved away";
    quarantine(this.path, reason, this.#options.clock.now() * MICROS_PER_MS, "wal");
  }

  #writeShutdownMarker(isSuspect: boolean): void {
    if (this.#damage !== undefined) writeShutdownMarker(this.path, "damaged", { finding: this.#damage });
    else if (isSuspect) writeShutdownMarker(this.path, "suspect");
    else if (this.isChecked && !this.#fatalFailure)
      writeShutdownMarker(this.path, "clean", { epoch: this.#epoch });
  }

  /** Ignores failures: a later call or the next start does the work. Corruption is still remembered. */
  #bestEffort(work: () => void): void {
    if (this.#fatalFailure) return;
    try {
      this.runGuarded(work);
    } catch (error) {
      if (!(error instanceof Failure || error instanceof Database.SqliteError)) throw error;
    }
  }

  /** Remembers a failure that forbids further writes. */
  #toFailure(error: unknown): unknown {
    const failure = toFailure(error, this.path);
    if (isFatal(failure)) this.#fatalFailure ??= failure;
    return failure;
  }

  #rollback(): void {
    try {
      this.connection.database.exec("ROLLBACK");
    } catch (error) {
      this.#fatalFailure ??= toFailure(error, this.path);
    }
  }

  /** This connection holds the write lock, so the epoch cannot change before the commit. */
  #assertEpoch(): void {
    const epoch = this.connection.findValue("SELECT epoch FROM warehouse_state");
    if (epoch === this.#epoch) return;
    this.#fatalFailure = new Failure(`another mds-sync has become the writer of ${this.path}`, {
      code: "writer_replaced",
      remedy: "stop this process: another one has taken over",
    });
    throw this.#fatalFailure;
  }
}

/** Acquires the writer lock, inspects the file and migrates it. */
export function openWriter(given: string, options: WriterOptions): WarehouseWriter {
  const { clock, log = silentLog, fileSystem = fileSystemInfo, mayDeferCheck = false } = options;
  const onUpgrade = (upgrade: Upgrade) => {
    log.warn({ upgrade: describeUpgrade(upgrade) }, "upgrading warehouse");
    options.onUpgrade?.(upgrade);
  };
  translateErrors(given, () => createFolder(dirname(given)));
  const path = translateErrors(given, () => resolvePath(given));
  assertLocalFileSystem(path, fileSystem);
  const isNew = !wasWarehouse(path);
  const lock = acquireWriterLock(path);
  let connection: Connection | undefined;
  try {
    if (lock.killedWriter) recordKilledWriter(path, lock.killedWriter);
    const inspection = inspectFile(path, clock.now() * MICROS_PER_MS, { mayDeferCheck, isNew, fileSystem });
    for (const found of inspection.quarantined) log.error({ ...found }, "damaged warehouse quarantined");
    removeShutdownMarker(path);
    if (!statSync(path, { throwIfNoEntry: false })) createFile(path, fileSystem, inspection);
    connection = connectWriter(path);
    const opened = connection;
    translateErrors(path, () => migrate(opened, { fileSystem, onUpgrade }));
    const warehouse = new WarehouseWriter(connection, lock, inspection, options);
    // Logged once it is open: while the disk is full, the opening is repeated every few seconds.
    if (isSymbolicLink(given)) log.warn({ link: given, path }, "warehouse path is a symbolic link");
    return warehouse;
  } catch (error) {
    connection?.close();
    lock.release();
    throw error;
  }
}

/**
 * Creates the file under a temporary name, so that a crash leaves no empty file that looks damaged. It gets the access of the
 * file that it replaces.
 */
function createFile(path: string, fileSystem: FileSystemInfo, { quarantined }: InspectionResult): void {
  const partial = `${path}.new`;
  removeDatabase(partial);
  const replaced = quarantined.at(-1)?.files[0];
  if (replaced !== undefined) translateErrors(path, () => createEmptyFile(partial, statSync(replaced)));
  translateErrors(path, () => {
    using connection = connectWriter(partial);
    migrate(connection, { fileSystem });
  });
  translateErrors(path, () => {
    renameSync(partial, path);
    syncToDisk(dirname(path));
  });
}

function readInode(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}
