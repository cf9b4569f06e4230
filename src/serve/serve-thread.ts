import { Worker } from "node:worker_threads";
import { deserialiseFailure, type SerialisedFailure, threadStartFailure } from "../model/failure.ts";
import type { ServeStatus } from "../model/status/serve-status.ts";
import { resolveSiblingModule } from "../runtime/child-process.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { Log, LogEntry } from "../runtime/log.ts";
import type { ServeSettings } from "./serve-settings.ts";

export type ServeThreadMessage =
  | { readonly kind: "listening"; readonly baseUrl: string; readonly wsUrl: string }
  | { readonly kind: "failed"; readonly failure: SerialisedFailure }
  | { readonly kind: "status"; readonly status: ServeStatus }
  | { readonly kind: "log"; readonly entry: LogEntry };

interface ServeThreadOptions {
  readonly settings: ServeSettings;
  readonly clock: Clock;
  readonly log: Log;
}

/** A client that makes the thread need more ends this thread, not the daemon. */
const MAX_HEAP_MB = 512;
const RESTART_DELAY_MS = 5_000;

/** Runs the server beside the daemon, in a thread of its own: its requests must not delay the network I/O of the sync. */
export class ServeThread {
  readonly #options: ServeThreadOptions;
  #worker: Worker | undefined;
  #status: ServeStatus | undefined;
  #cancelRestart: Cancel | undefined;
  #isClosed = false;

  private constructor(options: ServeThreadOptions) {
    this.#options = options;
  }

  /** Resolves once it listens. */
  static async start(options: ServeThreadOptions): Promise<ServeThread> {
    const thread = new ServeThread(options);
    await thread.#start();
    return thread;
  }

  /** Undefined while the thread restarts. */
  get status(): ServeStatus | undefined {
    return this.#status;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRestart?.();
    await this.#worker?.terminate();
  }

  #start(): Promise<void> {
    const { settings, log } = this.#options;
    return new Promise((resolve, reject) => {
      let worker: Worker;
      try {
        worker = new Worker(resolveSiblingModule("./serve-worker", import.meta.url), {
          name: "serve",
          workerData: settings,
          resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
        });
      } catch (error) {
        reject(threadStartFailure(error));
        return;
      }
      this.#worker = worker;
      let isListening = false;
      worker.on("message", (message: ServeThreadMessage) => {
        if (message.kind === "log") log[message.entry.level](message.entry.fields, message.entry.message);
        else if (message.kind === "status") this.#status = message.status;
        else if (message.kind === "failed") reject(deserialiseFailure(message.failure));
        else {
          isListening = true;
          log.info({ address: message.baseUrl, websocket: message.wsUrl }, "serving the warehouse");
          resolve();
        }
      });
      worker.on("error", (error) => {
        log.error({ error: error.message }, "serve thread failed");
        reject(error);
      });
      worker.on("exit", () => {
        this.#worker = undefined;
        this.#status = undefined;
        if (isListening && !this.#isClosed) this.#restartLater();
      });
    });
  }

  #restartLater(): void {
    const { clock, log } = this.#options;
    this.#cancelRestart = clock.after(RESTART_DELAY_MS, () => {
      this.#start().catch((error: unknown) => {
        log.error({ error: String(error) }, "serve thread cannot restart");
        if (!this.#isClosed) this.#restartLater();
      });
    });
  }
}
