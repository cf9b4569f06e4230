import { EventEmitter } from "node:events";
import { MessageChannel, type MessagePort, type Transferable } from "node:worker_threads";
import { serveCalls } from "../../../src/ingest/thread/serve-calls.ts";
import { serveScans } from "../../../src/ingest/thread/serve-scans.ts";
import { type StartWorker, startWorker, type ThreadWorker } from "../../../src/runtime/thread.ts";
import { processEntry } from "../build-program.ts";

/** One end of a channel. Messages pass through it, so they are cloned and transferred as between threads. */
export class InProcessWorker extends EventEmitter implements ThreadWorker {
  readonly #near: MessagePort;
  readonly #far: MessagePort;

  constructor(serve: (port: MessagePort) => void) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#near = port1;
    this.#far = port2;
    port1.on("message", (message) => this.emit("message", message));
    serve(port2);
  }

  postMessage(message: unknown, transferList: readonly Transferable[] = []): void {
    this.#near.postMessage(message, transferList);
  }

  async terminate(): Promise<void> {
    this.#near.close();
    this.#far.close();
    this.emit("exit");
  }
}

/** Runs the ingest and scan threads in this thread: a thread start takes longer than many a whole sync. */
export const startIngestInProcess: StartWorker = (file, options) => {
  // Built, it starts four times as fast as from its sources.
  if (/\breader-worker\.ts$/.test(file)) return startWorker(processEntry("reader-worker"), options);
  const { workerData } = options;
  if (/\bscan-worker\.ts$/.test(file)) return new InProcessWorker((port) => serveScans(workerData, port));
  return new InProcessWorker((port) => serveCalls(workerData, port));
};
