import { MessageChannel } from "node:worker_threads";
import type { CommitNews } from "../../model/answers/ticks.ts";
import { deserialiseFailure, Failure } from "../../model/failure.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { resolveSiblingModule } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { type StartWorker, TERMINATE_TIMEOUT_MS, Thread } from "../../runtime/thread.ts";
import { raceAbort } from "../../runtime/timeouts.ts";
import type { Upgrade } from "../../warehouse/migrate.ts";
import { type BlockingFailure, isBlocking, isCorruption } from "../../warehouse/sqlite/sqlite-errors.ts";
import type { ReadPageOptions } from "../decode/read-page.ts";
import {
  type IngestCall,
  type IngestCalls,
  type IngestNotices,
  type IngestReply,
  type IngestWorkerData,
  type ScanCalls,
  stoppedFailure,
} from "./messages.ts";
import type { OperationArgs, OperationName, OperationResult } from "./operations.ts";

export interface IngestThreadOptions {
  readonly path: string;
  readonly clock: Clock;
  /** The service's time in milliseconds: a wrong local clock must not change which records count as too young or as future ones. */
  readonly serviceNow?: () => number | undefined;
  readonly log: Log;
  /** What must not be stored even if the service sends it; a new array after each change. */
  readonly secrets?: () => readonly string[];
  /** Aborts the opening of the warehouse. */
  readonly signal?: AbortSignal;
  /** Open a large file after a crash without an integrity check: see `isChecked`. */
  readonly mayDeferCheck?: boolean;
  /** Called after commits that changed rows or coverage. */
  readonly onCommit?: (news: readonly CommitNews[]) => void;
  /** Called before the thread upgrades a warehouse of an older version. */
  readonly onUpgrade?: (upgrade: Upgrade) => void;
  /** Starts the two threads. Default: real ones. */
  readonly startWorker?: StartWorker | undefined;
}

type SentCall = Pick<IngestCall, "operation" | "args">;

/** Callers wait while this many calls are queued: this bounds the memory however fast the network is. */
const MAX_QUEUED = 6;
const STORAGE_RETRY_INTERVAL_MS = 5_000;
/**
 * Pages are short-lived, so a larger young generation only retains more garbage (decompressed bodies).
 * Measured with V8's default instead: twice the resident memory (490 MiB), the same CPU per row.
 */
const MAX_YOUNG_HEAP_MB = 6;
/** The total time for closing, which includes the time to terminate a thread that does not close. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Operations that need neither disk space nor the write lock, and change nothing that a later commit depends on. */
const unorderedOperations: ReadonlySet<string> = new Set([
  ...["closePages", "ping", "close", "checkStorage"],
  ...["recordIntegrityCheck", "listNewestTicks"],
]);

const noSecrets: readonly string[] = [];

/**
 * The main thread's handle of the ingest thread, which commits, one call at a time. A second thread decodes the pages beside it,
 * which takes almost as long as committing them, and sends them to it: this thread sees only a summary of each.
 */
export class IngestThread {
  readonly #writer: Thread<IngestCalls, IngestNotices>;
  readonly #scanner: Thread<ScanCalls>;
  readonly #options: IngestThreadOptions;
  /** As each thread knows them. */
  readonly #sentSecrets = { writer: noSecrets, scanner: noSecrets };
  readonly #slotWaiters: (() => void)[] = [];
  /** Calls that are queued or running. */
  queuedCalls = 0;
  #nextTicket = 0;
  /** Ordered calls that are not done, oldest first; those that are to be sent again, with how to wake them. */
  readonly #undone = new Map<number, (() => void) | undefined>();
  #nextReader = 1;
  /** The failure behind `blockedBy`. */
  blockingFailure: BlockingFailure | undefined;
  /** False: the file was opened without an integrity check, which must still run. */
  isChecked = true;
  #upgradeStartedAt: number | undefined;
  readonly #closing = new AbortController();
  /** Shared with the thread: once set, it rejects queued calls without running them. */
  readonly #stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

  constructor(options: IngestThreadOptions) {
    const { clock, log, onUpgrade, startWorker } = options;
    const threadOptions = {
      clock,
      log,
      startWorker,
      bugCode: "ingest_bug",
      endFailure: (reason: string) => new Failure(reason, { code: "ingest_died" }),
      resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB },
    } as const;
    const { port1, port2 } = new MessageChannel();
    this.#writer = new Thread({
      ...threadOptions,
      name: "ingest",
      file: resolveSiblingModule("./ingest-worker", import.meta.url),
      workerData: { stopFlag: this.#stopFlag, pages: port1 } satisfies IngestWorkerData,
      transferList: [port1],
      handlers: {
        upgrade: (upgrade) => {
          this.#upgradeStartedAt = clock.monotonic();
          onUpgrade?.(upgrade);
        },
      },
    });
    this.#scanner = new Thread({
      ...threadOptions,
      name: "scan",
      file: resolveSiblingModule("./scan-worker", import.meta.url),
      workerData: port2,
      transferList: [port2],
      handlers: {},
    });
    this.#options = options;
  }

  /** Starts the threads; resolves when the warehouse is open and migrated. */
  async start(): Promise<this> {
    const { path, mayDeferCheck = false, signal, clock, log } = this.#options;
    try {
      await Promise.all([this.#scanner.start(), this.#writer.start()]);
      const open = this.call("open", { path, mayDeferCheck }, signal);
      this.isChecked = (await raceAbort(open, signal)).isChecked;
      if (this.#upgradeStartedAt !== undefined) {
        const seconds = Math.ceil((clock.monotonic() - this.#upgradeStartedAt) / 1000);
        log.warn({ seconds }, "warehouse upgraded");
      }
    } catch (error) {
      await this.close();
      throw error;
    }
    return this;
  }

  /** `disk_full` and `db_locked` are temporary: calls are retried until they succeed. */
  get state(): "working" | "disk_full" | "db_locked" {
    return this.blockingFailure?.code ?? "working";
  }

  /** Why the thread cannot write at present, in one line with its remedy; undefined while it works. */
  get blockedBy(): string | undefined {
    return this.blockingFailure?.summary;
  }

  /** Replies so far, failures included: while it grows, the ingest thread is alive. */
  get replyCount(): number {
    return this.#writer.answerCount;
  }

  /** The age of the oldest call without a reply; 0 if there is none. */
  get oldestCallAgeMs(): number {
    return Math.max(this.#writer.oldestCallAgeMs, this.#scanner.oldestCallAgeMs);
  }

  /**
   * Reads the pages of one walk or list. The ingest thread keeps them until their commit, or until the reader is closed. Needs no slot:
   * each walk reads one page at a time.
   */
  openPages(options: ReadPageOptions) {
    const id = this.#nextReader++;
    let pages = 0;
    return {
      /** Names the reader in commits. */
      id,
      /** Decodes a page, the memory of which is transferred. `number` names the page in its commit. */
      read: async (body: ResponseBody) => {
        this.#closing.signal.throwIfAborted();
        const number = ++pages;
        const page = { reader: id, number, options, body, ...this.#newSecrets("scanner") };
        const summary = await this.#scanner
          .call("scan", page, [body.bytes.buffer])
          .finally(() => this.#closing.signal.throwIfAborted());
        return { ...summary, number };
      },
      close: () => {
        if (pages > 0) this.call("closePages", id).catch(() => {});
      },
    };
  }

  /**
   * Runs an operation in the ingest thread. Waits while the queue is full, the disk is full or another program holds the write
   * lock; rejects with any other failure.
   */
  async call<N extends OperationName>(
    operation: N,
    args: OperationArgs<N>,
    signal?: AbortSignal,
  ): Promise<OperationResult<N>> {
    this.#closing.signal.throwIfAborted();
    await this.#acquireSlot();
    try {
      this.#closing.signal.throwIfAborted();
      return (await this.#callUntilStored({ operation, args }, signal)) as OperationResult<N>;
    } finally {
      this.#releaseSlot();
    }
  }

  /**
   * Waits for the running operation, rejects queued calls, and closes the warehouse. `endedBy`: the error
   * that ended the work; if it is damage, the next start checks the whole file. `onFailure`: called if the close is
   * not clean.
   */
  async close({
    withinMs = CLOSE_TIMEOUT_MS,
    endedBy,
    onFailure,
  }: {
    withinMs?: number;
    endedBy?: unknown;
    onFailure?: (failure: Failure) => void;
  } = {}): Promise<void> {
    const closeArgs: OperationArgs<"close"> = { isSuspect: isCorruption(endedBy) };
    this.#closing.abort(stoppedFailure());
    Atomics.store(this.#stopFlag, 0, 1);
    const closed = this.#send({ operation: "close", args: closeArgs, isOrdered: false, isFirst: true }).then(
      (reply) => {
        if ("failure" in reply) onFailure?.(deserialiseFailure(reply.failure));
      },
    );
    // A stuck thread must not block the exit: the file survives its termination.
    await Promise.all([this.#writer.close(closed, withinMs - TERMINATE_TIMEOUT_MS), this.#scanner.close()]);
  }

  /**
   * Sends the call at once, so that the thread never waits. While storage blocks an earlier one, the thread rejects those behind it,
   * and they are sent again in order.
   */
  async #callUntilStored({ operation, args }: SentCall, signal: AbortSignal | undefined): Promise<unknown> {
    const ending = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
    const ticket = this.#nextTicket++;
    const isOrdered = !unorderedOperations.has(operation);
    const isFirst = () => !isOrdered || this.#undone.keys().next().value === ticket;
    let hasStorageFailed = false;
    let mustWait = isOrdered && [...this.#undone.values()].some((wake) => wake !== undefined);
    try {
      for (;;) {
        if (mustWait) await raceAbort(new Promise<void>((wake) => this.#undone.set(ticket, wake)), ending);
        signal?.throwIfAborted();
        if (isOrdered) this.#undone.set(ticket, undefined);
        const reply = await this.#send({ operation, args, isOrdered, isFirst: isFirst() });
        if ("value" in reply) {
          // A reply without a commit (`ping`) does not show that storage works again.
          if (this.blockingFailure && (reply.hasCommitted || hasStorageFailed)) {
            this.#options.log.info({ after: this.state }, "storage recovered");
            this.blockingFailure = undefined;
          }
          if (reply.news.length > 0) this.#options.onCommit?.(reply.news);
          return reply.value;
        }
        const failure = deserialiseFailure(reply.failure);
        if (!isBlocking(failure)) throw failure;
        if (this.state !== failure.code) this.#options.log.error({ code: failure.code }, failure.summary);
        this.blockingFailure = failure;
        hasStorageFailed = true;
        mustWait = !isFirst();
        if (mustWait) continue;
        if (isOrdered) this.#undone.set(ticket, () => {});
        await this.#options.clock.sleep(STORAGE_RETRY_INTERVAL_MS, ending);
      }
    } finally {
      this.#undone.delete(ticket);
      for (const wake of this.#undone.values()) wake?.();
    }
  }

  #send(sent: SentCall & Pick<IngestCall, "isOrdered" | "isFirst">): Promise<IngestReply> {
    const machineMs = this.#options.clock.now();
    const now = Math.floor((this.#options.serviceNow?.() ?? machineMs) * MICROS_PER_MS);
    const machineNow = Math.floor(machineMs * MICROS_PER_MS);
    return this.#writer.call("run", { ...sent, now, machineNow, ...this.#newSecrets("writer") });
  }

  #newSecrets(thread: "writer" | "scanner"): Pick<IngestCall, "secrets"> {
    const secrets = this.#options.secrets?.() ?? noSecrets;
    if (secrets === this.#sentSecrets[thread]) return {};
    this.#sentSecrets[thread] = secrets;
    return { secrets };
  }

  async #acquireSlot(): Promise<void> {
    if (this.queuedCalls >= MAX_QUEUED) await new Promise<void>((resolve) => this.#slotWaiters.push(resolve));
    else this.queuedCalls++;
  }

  /** Passes the slot to the longest waiting caller. */
  #releaseSlot(): void {
    const next = this.#slotWaiters.shift();
    if (next) next();
    else this.queuedCalls--;
  }
}
