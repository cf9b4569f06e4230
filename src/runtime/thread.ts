import { setPriority } from "node:os";
import {
  parentPort,
  type ResourceLimits,
  type Transferable,
  Worker,
  type WorkerOptions,
} from "node:worker_threads";
import {
  deserialiseFailure,
  type Failure,
  type FailureCode,
  type SerialisedFailure,
  serialiseFailure,
  threadStartFailure,
} from "../model/failure.ts";
import type { Cancel, Clock } from "./clock.ts";
import { createForwardingLog, type Log, type LogEntry } from "./log.ts";
import { finishesWithin } from "./timeouts.ts";

/** The calls that one side answers: an interface with one method per call. A call without an answer is a notice. */
export type Calls<C> = { readonly [K in keyof C]: (args: never) => unknown };

/** `transfer`: memory that is moved to the other thread instead of copied. */
export type Call<C extends Calls<C>, K extends keyof C> = [
  name: K,
  args: Parameters<C[K]>[0],
  transfer?: readonly Transferable[],
];

/** Sends the answer of a call, at any time: at once, or after other work. For a notice it does nothing. */
export type Answer<Result> = (value: Result, transfer?: readonly Transferable[]) => void;

/** What a handler throws becomes the answer; the error of a notice is not caught. */
type Handlers<C extends Calls<C>> = {
  readonly [K in keyof C]: (args: Call<C, K>[1], answer: Answer<ReturnType<C[K]>>) => void | Promise<void>;
};

/** One side of two connected threads. */
export interface ThreadPort {
  postMessage(message: unknown, transfer?: readonly Transferable[]): void;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

interface ChannelOptions<Near extends Calls<Near>> {
  /** Default: the side of a worker thread. */
  readonly port?: ThreadPort | undefined;
  readonly handlers: Handlers<Near>;
  /** The code of an error that is no `Failure`. */
  readonly bugCode: FailureCode;
  /** Where the log of the other side goes. */
  readonly sink?: Log;
}

type Message =
  | { readonly id?: number; readonly name: PropertyKey; readonly args: unknown }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: SerialisedFailure }
  | { readonly entry: LogEntry };

/** The protocol between two threads: each calls the other (`Far`) and answers its calls (`Near`). */
export class Channel<Far extends Calls<Far>, Near extends Calls<Near>> {
  readonly #options: ChannelOptions<Near>;
  readonly #port: ThreadPort;
  readonly #pending = new Map<number, Omit<PromiseWithResolvers<unknown>, "promise">>();
  #nextId = 1;
  /** Logs on the other side. */
  readonly log = createForwardingLog((entry) => this.#post({ entry }));

  constructor(options: ChannelOptions<Near>) {
    const port = options.port ?? parentPort;
    if (!port) throw new Error("this module runs as a worker thread only");
    this.#options = options;
    this.#port = port;
    port.on("message", (message) => this.#receive(message as Message));
  }

  call<K extends keyof Far>(...[name, args, transfer]: Call<Far, K>): Promise<ReturnType<Far[K]>> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#post({ id, name, args }, transfer);
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
    });
  }

  /** Sends a notice. */
  send<K extends keyof Far>(...[name, args, transfer]: Call<Far, K>): void {
    this.#post({ name, args }, transfer);
  }

  /** Rejects the calls without an answer: the other side has ended. */
  end(failure: Failure): void {
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }

  #post(message: Message, transfer?: readonly Transferable[]): void {
    this.#port.postMessage(message, transfer);
  }

  #receive(message: Message): void {
    if ("name" in message) this.#serve(message.name as keyof Near, message.args, message.id);
    else if ("entry" in message) {
      const { level, fields, message: text } = message.entry;
      this.#options.sink?.[level](fields, text);
    } else {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if ("failure" in message) pending?.reject(deserialiseFailure(message.failure));
      else pending?.resolve(message.value);
    }
  }

  #serve<K extends keyof Near>(name: K, args: unknown, id: number | undefined): void {
    const { handlers, bugCode } = this.#options;
    const answer: Answer<unknown> = (value, transfer) => {
      if (id !== undefined) this.#post({ id, value }, transfer);
    };
    const fail = (error: unknown) => {
      if (id === undefined) throw error;
      this.#post({ id, failure: serialiseFailure(error, bugCode) });
    };
    try {
      handlers[name](args as Call<Near, K>[1], answer)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  }
}

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

/** On Linux this affects only the calling thread: when the CPU is busy, ingest goes first. */
export function lowerPriority(niceness: number): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(niceness);
  } catch {
    // A hardened systemd unit forbids the call.
  }
}
