import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { MessageChannel, type MessagePort, type Transferable } from "node:worker_threads";
import { serveCalls } from "../../../src/ingest/thread/serve-calls.ts";
import { serveScans } from "../../../src/ingest/thread/serve-scans.ts";

const { Worker } = workerThreads;
type WorkerArguments = ConstructorParameters<typeof Worker>;

/** Serves the calls of one thread of ingest. Messages pass through a channel, so they are cloned and transferred as before. */
class InProcessWorker extends EventEmitter {
  readonly #near: MessagePort;
  readonly #far: MessagePort;

  constructor(name: "ingest" | "scan", stopFlag: Int32Array) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#near = port1;
    this.#far = port2;
    port1.on("message", (message) => this.emit("message", message));
    if (name === "scan") serveScans(port2);
    else serveCalls(port2, stopFlag);
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

/** A thread of ingest in this thread; any other thread as usual. */
function startWorker(...args: WorkerArguments): InProcessWorker | workerThreads.Worker {
  const [file, options] = args;
  const [, name] = /(ingest|scan)-worker\.[jt]s$/.exec(String(file)) ?? [];
  if (name !== "ingest" && name !== "scan") return new Worker(...args);
  return new InProcessWorker(name, options?.workerData);
}

/**
 * Serves the calls of the ingest and scan threads in this thread until the returned function is called: a thread start loads every
 * module again, which takes longer than many a whole sync.
 */
export function serveIngestInProcess(): () => void {
  const before = workerThreads.Worker;
  replaceWorker(startWorker);
  return () => replaceWorker(before);
}

/** Runs `work` with the threads of ingest in this thread. */
export async function withInProcessIngest<T>(work: () => Promise<T>): Promise<T> {
  const restore = serveIngestInProcess();
  try {
    return await work();
  } finally {
    restore();
  }
}

function replaceWorker(Worker: unknown): void {
  Object.assign(workerThreads, { Worker });
  syncBuiltinESMExports();
}
