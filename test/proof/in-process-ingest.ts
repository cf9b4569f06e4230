import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { MessageChannel, type MessagePort, type Transferable } from "node:worker_threads";
import { serveCalls } from "../../src/ingest/thread/serve-calls.ts";
import { serveScans } from "../../src/ingest/thread/serve-scans.ts";

/**
 * Serves the calls of the ingest and scan threads in this thread: a thread start loads every module again, which takes longer than
 * the whole run of a small schedule. Messages still pass through a channel, so they are cloned and transferred as before.
 */
class InProcessWorker extends EventEmitter {
  readonly #near: MessagePort;
  readonly #far: MessagePort;

  constructor(file: string, { workerData }: { workerData: Int32Array }) {
    super();
    const [, name] = /(ingest|scan)-worker\.[jt]s$/.exec(file) ?? [];
    if (!name) throw new Error(`not a thread of ingest: ${file}`);
    const { port1, port2 } = new MessageChannel();
    this.#near = port1;
    this.#far = port2;
    port1.on("message", (message) => this.emit("message", message));
    if (name === "scan") serveScans(port2);
    else serveCalls(port2, workerData);
  }

  postMessage(message: unknown, transferList: readonly Transferable[] = []): void {
    this.#near.postMessage(message, transferList);
  }

  async terminate(): Promise<number> {
    this.#near.close();
    this.#far.close();
    this.emit("exit", 0);
    return 0;
  }
}

/** Runs `work` with the threads of ingest in this thread. */
export async function withInProcessIngest<T>(work: () => Promise<T>): Promise<T> {
  const { Worker } = workerThreads;
  replaceWorker(InProcessWorker);
  try {
    return await work();
  } finally {
    replaceWorker(Worker);
  }
}

function replaceWorker(Worker: unknown): void {
  Object.assign(workerThreads, { Worker });
  syncBuiltinESMExports();
}
