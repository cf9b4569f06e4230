import { Failure } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { resolveSiblingModule } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { type StartWorker, Thread } from "../runtime/thread.ts";
import type { QueryResults } from "./api-answers.ts";
import type { PageQuery } from "./page-queries.ts";
import type { PageParams } from "./query-params.ts";

export interface ReaderCalls {
  query(query: PageQuery): Uint8Array | undefined;
}

interface ReaderThreadOptions extends Pick<PageQuery, "path" | "confirmation"> {
  readonly now: () => Micros;
  readonly clock: Clock;
  readonly log: Log;
  readonly startWorker?: StartWorker | undefined;
}

/** A ledger that needs more memory ends this thread, not the daemon. */
const MAX_HEAP_MB = 160;

/** Reads the warehouse for the dashboard in its own thread (docs/decisions/threads.md). A query starts it if it does not run. */
export class ReaderThread {
  readonly #options: ReaderThreadOptions;
  readonly #thread: Thread<ReaderCalls>;

  constructor(options: ReaderThreadOptions) {
    this.#options = options;
    this.#thread = new Thread({
      name: "dashboard reader",
      file: resolveSiblingModule("./reader-worker", import.meta.url),
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
      bugCode: "not_readable",
      clock: options.clock,
      log: options.log,
      startWorker: options.startWorker,
      handlers: {},
      endFailure: readFailure,
    });
  }

  async query<K extends keyof QueryResults>(kind: K, params: PageParams[K]): Promise<QueryResults[K]> {
    const bytes = await this.queryBytes(kind, params);
    return bytes && JSON.parse(new TextDecoder().decode(bytes));
  }

  /** The result as the bytes of its JSON, which the main thread neither copies nor serialises; undefined if there is none. */
  async queryBytes<K extends keyof QueryResults>(kind: K, params: PageParams[K]) {
    const { path, now, confirmation } = this.#options;
    if (!this.#thread.isRunning)
      await this.#thread.start().catch(({ summary }: Failure) => {
        throw readFailure(summary);
      });
    return this.#thread.call("query", { kind, params, path, now: now(), confirmation } as PageQuery);
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

const readFailure = (reason: string): Failure => new Failure(reason, { code: "not_readable" });
