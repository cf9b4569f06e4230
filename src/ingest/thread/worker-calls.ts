import type { Transferable, Worker } from "node:worker_threads";
import { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";

interface Numbered {
  readonly id: number;
}

interface WorkerCallsOptions<Notice> {
  readonly name: string;
  readonly clock: Clock;
  /** Called for a message that is no reply. */
  readonly onNotice?: (notice: Notice) => void;
}

/** Sends numbered calls to a worker thread, and returns the replies. */
export class WorkerCalls<Call extends Numbered, Reply extends Numbered, Notice extends object = never> {
  readonly #worker: Worker;
  readonly #clock: Clock;
  /** In the order in which the calls were sent. */
  readonly #pending = new Map<number, PendingCall<Reply>>();
  #nextId = 1;
  #replyCount = 0;
  #death: Failure | undefined;
  /** Resolves when the thread has exited. */
  readonly #exited: Promise<void>;

  constructor(worker: Worker, { name, clock, onNotice }: WorkerCallsOptions<Notice>) {
    this.#worker = worker;
    this.#clock = clock;
    worker.on("message", (reply: Reply | Notice) => {
      if (!("id" in reply)) return onNotice?.(reply);
      const pending = this.#pending.get(reply.id);
      this.#pending.delete(reply.id);
      this.#replyCount++;
      pending?.resolve(reply);
    });
    worker.on("error", (error) => this.#failPending(`the ${name} thread failed: ${error.message}`));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#failPending(`the ${name} thread has exited`);
        resolve();
      });
    });
  }

  /** Replies so far, failures included. */
  get replyCount(): number {
    return this.#replyCount;
  }

  /** The age of the oldest call without a reply; 0 if there is none. */
  get oldestCallAgeMs(): number {
    const [oldest] = this.#pending.values();
    return oldest ? this.#clock.monotonic() - oldest.sentAt : 0;
  }

  /** Rejects with `ingest_died` if the thread ends before it replies. */
  call(call: Omit<Call, "id">, transfer: readonly Transferable[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#death) return reject(this.#death);
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject, sentAt: this.#clock.monotonic() });
      this.#worker.postMessage({ ...call, id }, transfer);
    });
  }

  /** Sends a message that has no reply. */
  post(message: object, transfer: readonly Transferable[]): void {
    this.#worker.postMessage(message, transfer);
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
    await this.#exited;
  }

  #failPending(message: string): void {
    if (this.#death) return;
    this.#death = new Failure(message, { code: "ingest_died" });
    for (const { reject } of this.#pending.values()) reject(this.#death);
    this.#pending.clear();
  }
}

interface PendingCall<Reply> {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (failure: Failure) => void;
  readonly sentAt: number;
}
