import { Worker } from "node:worker_threads";
import { Failure, receiveFailure, threadFailure } from "../../model/failure.ts";
import type { Body } from "../../model/response-body.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { ownFile } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { abortable, doneWithin } from "../../runtime/timeouts.ts";
import { isDamage } from "../../warehouse/sqlite/sqlite-errors.ts";
import { type Call, closing, memoryOf, type Reply } from "./messages.ts";
import type { OperationArgs, OperationName, OperationResult } from "./operations.ts";

export interface IngestOptions {
  /** The warehouse file. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the wait for a warehouse that is not open yet, whatever it waits for. */
  readonly signal?: AbortSignal;
  /** The thread runs, and begins to open the warehouse: for those who look on meanwhile. */
  readonly opening?: (ingest: Ingest) => void;
  /** A large file that was not closed in order is opened unchecked: see `isChecked`. */
  readonly mayDeferCheck?: boolean;
}

/** Storage troubles that pass: the work is kept and done again until it succeeds. */
export type IngestState = "working" | "disk_full" | "db_locked";

/** Pages queued beyond these make the callers wait: memory stays flat however fast the network is. */
const MOST_QUEUED = 6;
const RETRY_STORAGE_MS = 5_000;
/**
 * Pages are read, written and forgotten at once. With more room for young objects the thread only keeps more of the
 * forgotten ones, and the unpacked bodies with them: 175 MB more than with 12 MB, for the same CPU a row.
 */
const YOUNG_HEAP_MB = 6;
/** What closing may take in all, and how much of it is left for ending a thread that does not close. */
const CLOSE_PATIENCE_MS = 2_000;
const END_PATIENCE_MS = 500;

/**
 * The main thread's end of the ingest thread: bytes in, committed facts out. Calls are carried out one after the other,
 * in the order in which they were made.
 */
export class Ingest {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #log: Log;
  /** In the order in which they were sent. */
  readonly #pending = new Map<number, { settle: (reply: Reply) => void; sentAt: number }>();
  readonly #waiting: (() => void)[] = [];
  #queued = 0;
  #answers = 0;
  #nextId = 1;
  #state: IngestState = "working";
  #trouble: string | undefined;
  #death: Failure | undefined;
  #isChecked = true;
  readonly #closing = new AbortController();
  /** Shared with the thread: once set, what is queued there is given back undone. */
  readonly #stopFlag: Int32Array;
  /** Resolves once the thread is gone. */
  readonly #gone: Promise<void>;

  private constructor(worker: Worker, stopFlag: Int32Array, { clock, log }: IngestOptions) {
    this.#worker = worker;
    this.#stopFlag = stopFlag;
    this.#clock = clock;
    this.#log = log;
    worker.on("message", (reply: Reply) => {
      const pending = this.#pending.get(reply.id);
      this.#pending.delete(reply.id);
      this.#answers++;
      pending?.settle(reply);
    });
    worker.on("error", (error) => this.#die(`the ingest thread failed: ${error.message}`));
    this.#gone = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#die("the ingest thread has ended");
        resolve();
      });
    });
  }

  /** Starts the thread; resolves once the warehouse is open and migrated there. */
  static async start(options: IngestOptions): Promise<Ingest> {
    const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const ingest = new Ingest(startThread(stopFlag), stopFlag, options);
    try {
      const { path, mayDeferCheck = false, signal } = options;
      options.opening?.(ingest);
      const open = ingest.call("open", { path, mayDeferCheck }, [], signal);
      const { said, isChecked } = await abortable(open, signal);
      ingest.#isChecked = isChecked;
      for (const { level, fields, message } of said) options.log[level](fields, message);
    } catch (error) {
      await ingest.close();
      throw error;
    }
    return ingest;
  }

  get state(): IngestState {
    return this.#state;
  }

  /** What keeps the thread from writing at present, in one line with its remedy; undefined while it works. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** False: the file was opened without a check, which is still to be made. */
  get isChecked(): boolean {
    return this.#isChecked;
  }

  /** Calls that are queued or under way. */
  get queued(): number {
    return this.#queued;
  }

  /** Answers of the thread so far, refusals included: while they come, it is alive. */
  get answers(): number {
    return this.#answers;
  }

  /** How long the thread has been silent on what it was sent first of all that is unanswered; 0 when nothing is. */
  get silentMs(): number {
    const [oldest] = this.#pending.values();
    return oldest ? this.#clock.monotonic() - oldest.sentAt : 0;
  }

  /**
   * Carries out one operation in the ingest thread. The bodies' memory is handed over. Waits for its turn when many are
   * queued, and through a full disk or a foreign write lock; rejects with the operation's failure otherwise.
   */
  async call<N extends OperationName>(
    operation: N,
    args: OperationArgs<N>,
    bodies: readonly Body[] = [],
    signal?: AbortSignal,
  ): Promise<OperationResult<N>> {
    this.#closing.signal.throwIfAborted();
    const release = this.#clock.hold();
    try {
      await this.#turn();
      this.#closing.signal.throwIfAborted();
      return (await this.#attempt(operation, args, bodies, signal)) as OperationResult<N>;
    } finally {
      this.#done();
      release();
    }
  }

  /**
   * Lets the operation in hand finish or roll back, gives back what is queued undone, and closes the warehouse. `endedBy`:
   * what the work ended with, if it failed: damage that a reader has met makes the next start look at the whole file.
   */
  async close({
    withinMs = CLOSE_PATIENCE_MS,
    endedBy,
  }: {
    withinMs?: number;
    endedBy?: unknown;
  } = {}): Promise<void> {
    const end: OperationArgs<"close"> = { isSuspect: isDamage(endedBy) };
    this.#closing.abort(closing());
    Atomics.store(this.#stopFlag, 0, 1);
    // Held: on a turned clock the patience must not run out while the thread is at work.
    const release = this.#clock.hold();
    const closed = this.#death === undefined ? this.#send("close", end, []) : Promise.resolve();
    // A thread that is stuck must not keep the program from ending: the file is as after a crash then, which is sound.
    await doneWithin(
      this.#clock,
      withinMs - END_PATIENCE_MS,
      closed.catch(() => {}),
    );
    await doneWithin(
      this.#clock,
      END_PATIENCE_MS,
      this.#worker.terminate().then(() => this.#gone),
    );
    release();
  }

  async #attempt(
    operation: string,
    args: unknown,
    firstBodies: readonly Body[],
    signal?: AbortSignal,
  ): Promise<unknown> {
    let bodies = firstBodies;
    let wasRefused = false;
    for (;;) {
      signal?.throwIfAborted();
      const reply = await this.#send(operation, args, bodies);
      if ("value" in reply) {
        // A sign of life, or a page that was only read, does not say that there is room or that the lock is free.
        if (this.#state !== "working" && (reply.hasCommitted || wasRefused)) {
          this.#log.info({ after: this.#state }, "storage is well again");
          this.#state = "working";
          this.#trouble = undefined;
        }
        return reply.value;
      }
      const failure = receiveFailure(reply.failure);
      if (failure.code !== "disk_full" && failure.code !== "db_locked") throw failure;
      if (this.#state !== failure.code) this.#log.error({ code: failure.code }, failure.line);
      this.#state = failure.code;
      this.#trouble = failure.line;
      wasRefused = true;
      bodies = reply.bodies;
      // Waiting for time, not working: a turned clock may move.
      const resume = this.#clock.waive();
      const ending = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
      await this.#clock.sleep(RETRY_STORAGE_MS, ending).finally(resume);
    }
  }

  #send(operation: string, args: unknown, bodies: readonly Body[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#death) return reject(this.#death);
      const id = this.#nextId++;
      const call: Call = { id, operation, args, bodies, now: Math.floor(this.#clock.now() * MICROS_PER_MS) };
      this.#pending.set(id, { settle: resolve, sentAt: this.#clock.monotonic() });
      this.#worker.postMessage(call, memoryOf(bodies));
    });
  }

  async #turn(): Promise<void> {
    if (this.#queued >= MOST_QUEUED) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#queued++;
  }

  /** Hands the place on to whoever waits longest. */
  #done(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#queued--;
  }

  #die(message: string): void {
    if (this.#death) return;
    this.#death = new Failure(message, { family: "bug", code: "ingest_died" });
    const failure = { message, family: "bug", code: "ingest_died" } as const;
    for (const [id, { settle }] of this.#pending) settle({ id, failure, bodies: [] });
    this.#pending.clear();
  }
}

function startThread(stopFlag: Int32Array): Worker {
  try {
    return new Worker(ownFile("./ingest-worker", import.meta.url), {
      name: "ingest",
      workerData: stopFlag,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    });
  } catch (error) {
    throw threadFailure(error);
  }
}
