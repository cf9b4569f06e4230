import { Agent, get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

export interface LoadOptions {
  readonly port: number;
  readonly paths: readonly string[];
  readonly clients: number;
  readonly requestsPerSecond: number;
  readonly seconds: number;
}

export interface LoadResult {
  /** Number of responses by status, or by error code for failures below HTTP. */
  readonly outcomes: Readonly<Record<string, number>>;
}

/** Many well-behaved HTTP clients, in a thread of their own so that they do not slow down the test. */
const { port, paths, clients, requestsPerSecond, seconds } = workerData as LoadOptions;
const agent = new Agent({ keepAlive: true, maxSockets: clients });
const outcomes: Record<string, number> = {};

function request(path: string): Promise<void> {
  return new Promise((resolve) => {
    const count = (outcome: string) => {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      resolve();
    };
    get({ host: "127.0.0.1", port, path, agent }, (answer) => {
      answer.resume();
      answer.on("end", () => count(String(answer.statusCode)));
    }).on("error", (error: NodeJS.ErrnoException) => count(error.code ?? error.message));
  });
}

const startedAt = performance.now();
let requestCount = 0;
async function sendRequests(): Promise<void> {
  for (let turn = requestCount++; turn < requestsPerSecond * seconds; turn = requestCount++) {
    const dueMs = startedAt + (turn / requestsPerSecond) * 1000 - performance.now();
    if (dueMs > 0) await new Promise((due) => setTimeout(due, dueMs));
    // Each request differs, so that no cached response answers it.
    await request((paths[turn % paths.length] ?? "/").replace("{turn}", String(turn)));
  }
}
await Promise.all(Array.from({ length: clients }, sendRequests));
agent.destroy();
parentPort?.postMessage({ outcomes } satisfies LoadResult);
