import { type ResourceLimits, type Transferable, Worker, type WorkerOptions } from "node:worker_threads";
import { type Failure, threadStartFailure } from "../model/failure.ts";
import type { Cancel, Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import { type Call, type Calls, Channel, type ChannelOptions, type ThreadPort } from "./thread-channel.ts";
import { finishesWithin } from "./timeouts.ts";

/** What a thread needs of `Worker`. */
export interface ThreadWorker extends ThreadPort {
  on(event: "message", listener: (message: unknown) => void): unknown;
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  on(event: "exit", listener: () => void): unknown;
  terminate(): Promise<unknown>;
}

export type StartWorker = (file: string, options: WorkerOptions) => ThreadWorker;
export const startWorker: StartWorker = (file, options) => new Worker(file, options);

interface ThreadOptions<Near extends Calls<Near>> extends Pick<ChannelOptions<Near>, "handlers" | "bugCode"> {
  readonly name: string;
  /** The module that runs in the thread: it opens a `Channel`. */
  readonly file: string;
  readonly workerData?: unknown;
  readonly transferList?: Transferable[];
  /** A thread that needs more memory ends, not the process. */
  readonly resourceLimits: ResourceLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs after each start. If it fails, the start has failed. */
  readonly onStart?: () => Promise<void>;
  /** The failure of calls that the thread cannot answer, because it has ended. */
  readonly endFailure: (reason: string) => Failure;
  /** Called when the thread has ended unexpectedly. */
  readonly onEnd?: (reason: string) => void;
  /** How long after an unexpected end the thread starts again. Undefined: it does not. */
  readonly restartDelayMs?: number;
  readonly startWorker?: StartWorker | undefined;
}

export const TERMINATE_TIMEOUT_MS = 500;

/** A worker thread that answers the calls `Far`, and may call back with `Near`. */
export class Thread<Far extends Calls<Far>, Near extends Calls<Near> = object> {
  readonly #options: ThreadOptions<Near>;
  #running: { readonly worker: ThreadWorker; readonly channel: Channel<Far, Near> } | undefined;
  #endReason = "the thread has not started";
  #hasStarted = false;
  #isClosed = false;
  #cancelRestart: Cancel | undefined;
  /** The calls without an answer, in the order in which they were sent. */
  readonly #unanswered = new Set<{ readonly sentAt: number }>();
  #answerCount = 0;

  constructor(options: ThreadOptions<Near>) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Answers so far, failures included. */
  get answerCount(): number {
    return this.#answerCount;
  }

  /** The age of the oldest call without an answer; 0 if there is none. */
  get oldestCallAgeMs(): number {
    const [oldest] = this.#unanswered;
    return oldest ? this.#options.clock.monotonic() - oldest.sentAt : 0;
  }

  async start(): Promise<void> {
    if (this.#isClosed) throw this.#options.endFailure(this.#endReason);
    this.#run();
    try {
      await this.#options.onStart?.();
    } catch (error) {
      await this.#terminate();
      throw error;
    }
    this.#hasStarted = true;
  }

  /** Rejects with `endFailure` if the thread ends before it answers. */
  async call<K extends keyof Far>(...call: Call<Far, K>): Promise<ReturnType<Far[K]>> {
    const { clock, endFailure } = this.#options;
    if (!this.#running) throw endFailure(this.#endReason);
    const release = clock.beginWork();
    const sent = { sentAt: clock.monotonic() };
    this.#unanswered.add(sent);
    try {
      return await this.#running.channel.call(...call);
    } finally {
      this.#unanswered.delete(sent);
      this.#answerCount++;
      release();
    }
  }

  /** Ends the thread for good: after `lastCall`, or after `ms`. Terminating a stuck thread is like a crash. */
  async close(lastCall: Promise<unknown> = Promise.resolve(), ms = 0): Promise<void> {
    const { clock, name } = this.#options;
    this.#isClosed = true;
    this.#cancelRestart?.();
    // On a manual clock the time must not pass while the thread works.
    const release = clock.beginWork();
    const answered = lastCall.catch(() => {});
    await finishesWithin(clock, ms, answered);
    this.#endReason = `the ${name} thread is closed`;
    await finishesWithin(clock, TERMINATE_TIMEOUT_MS, this.#terminate());
    release();
  }

  #run(): void {
    const { name, file, workerData, transferList = [], resourceLimits, log, endFailure } = this.#options;
    const start = this.#options.startWorker ?? startWorker;
    let worker: ThreadWorker;
    try {
      worker = start(file, { name, workerData, transferList, resourceLimits });
    } catch (error) {
      throw threadStartFailure(error);
    }
    const channel = new Channel<Far, Near>({ ...this.#options, port: worker, sink: log });
    const running = { worker, channel };
    this.#running = running;
    let reason = `the ${name} thread has ended`;
    worker.on("error", (error) => {
      const isRefused = error.code === "ERR_WORKER_INIT_FAILED";
      reason = isRefused ? threadStartFailure(error).summary : `the ${name} thread failed: ${error.message}`;
    });
    worker.on("exit", () => {
      channel.end(endFailure(reason));
      if (this.#running !== running) return;
      this.#running = undefined;
      this.#endReason = reason;
      log.error({ thread: name, reason }, "thread ended unexpectedly");
      this.#options.onEnd?.(reason);
      if (this.#hasStarted) this.#restartLater();
    });
  }

  #restartLater(): void {
    const { name, clock, log, restartDelayMs } = this.#options;
    if (restartDelayMs === undefined || this.#isClosed) return;
    this.#cancelRestart?.();
    this.#cancelRestart = clock.after(restartDelayMs, () => {
      this.start().catch((error: unknown) => {
        if (!this.#isClosed) log.error({ thread: name, error: String(error) }, "thread cannot restart");
        this.#restartLater();
      });
    });
  }

  async #terminate(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.channel.end(this.#options.endFailure(this.#endReason));
    await running?.worker.terminate();
  }
}
