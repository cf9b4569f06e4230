import { Worker } from "node:worker_threads";
import { Failure, threadStartFailure } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { resolveSiblingModule } from "../runtime/child-process.ts";
import type { QueryResults } from "./api-answers.ts";
import type { PageQuery, PageQueryReply, ParamsOf } from "./page-queries.ts";

interface ReaderThreadOptions {
  /** The warehouse file; it may not exist yet. */
  readonly path: string;
  /** By the service's clock. */
  readonly now: () => Micros;
}

interface PendingQuery {
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: Failure) => void;
}

/** A ledger that needs more memory ends this thread, not the daemon. */
const MAX_HEAP_MB = 160;

/**
 * Reads the warehouse for the dashboard in its own thread: with thousands of series a query takes several hundred ms,
 * and the main thread must stay free for the network. The first query starts the thread.
 */
export class ReaderThread {
  readonly #options: ReaderThreadOptions;
  readonly #pending = new Map<number, PendingQuery>();
  #worker: Worker | undefined;
  #nextId = 1;
  #closed = false;

  constructor(options: ReaderThreadOptions) {
    this.#options = options;
  }

  query<K extends keyof QueryResults>(kind: K, ...[params]: ParamsOf<K>): Promise<QueryResults[K]> {
    return this.#post({ kind, params, asBytes: false }) as Promise<QueryResults[K]>;
  }

  /** The result as the bytes of its JSON; undefined if there is no result. */
  queryBytes<K extends keyof QueryResults>(
    kind: K,
    ...[params]: ParamsOf<K>
  ): Promise<Uint8Array | undefined> {
    return this.#post({ kind, params, asBytes: true }) as Promise<Uint8Array | undefined>;
  }

  #post(query: Pick<PageQuery, "kind" | "params" | "asBytes">): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(readFailure("the daemon is stopping"));
      const { path, now } = this.#options;
      // Start the thread before registering the query: if the start throws, no query may stay pending.
      const thread = this.#thread();
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      thread.postMessage({ ...query, id, path, now: now() });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#rejectAll("the daemon is stopping");
    await this.#worker?.terminate();
  }

  #thread(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startThread();
    worker.on("message", (reply: PageQueryReply) => {
      const pending = this.#pending.get(reply.id);
      this.#pending.delete(reply.id);
      if ("failure" in reply) pending?.reject(readFailure(reply.failure));
      else pending?.resolve(reply.value);
    });
    let reason = "the dashboard's reader thread has ended";
    worker.on("error", (error: NodeJS.ErrnoException) => {
      reason = error.code === "ERR_WORKER_INIT_FAILED" ? threadStartFailure(error).summary : error.message;
    });
    // The next query starts a new thread: the dashboard must recover without a restart of the daemon.
    worker.on("exit", () => {
      this.#worker = undefined;
      this.#rejectAll(reason);
    });
    this.#worker = worker;
    return worker;
  }

  #rejectAll(reason: string): void {
    for (const { reject } of this.#pending.values()) reject(readFailure(reason));
    this.#pending.clear();
  }
}

function startThread(): Worker {
  try {
    return new Worker(resolveSiblingModule("./reader-worker", import.meta.url), {
      name: "dashboard reader",
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
  } catch (error) {
    throw readFailure(threadStartFailure(error).summary);
  }
}

function readFailure(message: string): Failure {
  return new Failure(message, { code: "not_readable" });
}
