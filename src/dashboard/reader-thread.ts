import { Worker } from "node:worker_threads";
import { Failure, threadFailure } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { ownFile } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Answer, Answers, DetailOf, Question } from "./page-queries.ts";

export interface ReadingsOptions {
  /** The warehouse file; it may come to be later. */
  readonly path: string;
  readonly clock: Pick<Clock, "monotonic">;
  /** By the service's clock. */
  readonly now: () => Micros;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: Failure) => void;
}

/** A ledger that outgrows this ends the thread, not the daemon. */
const MOST_HEAP_MB = 160;
/** More questions than that are nobody's look at a page. */
const MOST_WAITING = 40;

/**
 * Reads the warehouse for those who look on, in a thread of its own: with thousands of series a look takes a good part of
 * a second, and the thread that has the network to mind must not be the one that waits. The thread starts with the first
 * question.
 */
export class Readings {
  readonly #options: ReadingsOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #nextId = 1;
  #closed = false;

  constructor(options: ReadingsOptions) {
    this.#options = options;
  }

  ask<K extends keyof Answers>(ask: K, ...[detail]: DetailOf<K>): Promise<Answers[K]> {
    return this.#question({ ask, detail, inBytes: false }) as Promise<Answers[K]>;
  }

  /** The answer as the bytes of its JSON; undefined where there is none. */
  askBytes<K extends keyof Answers>(ask: K, ...[detail]: DetailOf<K>): Promise<Uint8Array | undefined> {
    return this.#question({ ask, detail, inBytes: true }) as Promise<Uint8Array | undefined>;
  }

  #question(asked: Pick<Question, "ask" | "detail" | "inBytes">): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(unread("the daemon is stopping"));
      if (this.#waiting.size >= MOST_WAITING) return reject(unread("too many ask at once; try again"));
      const { path, clock, now } = this.#options;
      // First of all the thread: nobody may be left waiting for one that could not be started.
      const thread = this.#thread();
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      thread.postMessage({ ...asked, id, path, now: now(), at: clock.monotonic() });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#refuse("the daemon is stopping");
    await this.#worker?.terminate();
  }

  #thread(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startThread();
    worker.on("message", (answer: Answer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ("failure" in answer) waiting?.reject(unread(answer.failure));
      else waiting?.resolve(answer.value);
    });
    let reason = "the thread that reads for the dashboard has ended";
    worker.on("error", (error: NodeJS.ErrnoException) => {
      reason = error.code === "ERR_WORKER_INIT_FAILED" ? threadFailure(error).line : error.message;
    });
    // The next question starts another one: looking on must not need a restart of the daemon.
    worker.on("exit", () => {
      this.#worker = undefined;
      this.#refuse(reason);
    });
    this.#worker = worker;
    return worker;
  }

  #refuse(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(unread(reason));
    this.#waiting.clear();
  }
}

function startThread(): Worker {
  try {
    return new Worker(ownFile("./reader-worker", import.meta.url), {
      name: "readings",
      resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
    });
  } catch (error) {
    throw unread(threadFailure(error).line);
  }
}

function unread(message: string): Failure {
  return new Failure(message, { family: "retry", code: "not_readable" });
}
