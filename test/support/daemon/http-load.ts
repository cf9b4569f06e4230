import { Agent, get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

export interface Hammering {
  readonly port: number;
  readonly paths: readonly string[];
  readonly visitors: number;
  readonly perSecond: number;
  readonly seconds: number;
}

export interface Hammered {
  /** How often each status came; what went wrong below HTTP under its code. */
  readonly outcomes: Readonly<Record<string, number>>;
}

/** Many honest visitors at once, in a thread of their own: what they cost is not the service's time. */
const { port, paths, visitors, perSecond, seconds } = workerData as Hammering;
const agent = new Agent({ keepAlive: true, maxSockets: visitors });
const outcomes: Record<string, number> = {};

function ask(path: string): Promise<void> {
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

const begun = performance.now();
let asked = 0;
async function visit(): Promise<void> {
  for (let turn = asked++; turn < perSecond * seconds; turn = asked++) {
    const dueMs = begun + (turn / perSecond) * 1000 - performance.now();
    if (dueMs > 0) await new Promise((due) => setTimeout(due, dueMs));
    // Each wish is another one, so that no kept answer serves it.
    await ask((paths[turn % paths.length] ?? "/").replace("{turn}", String(turn)));
  }
}
await Promise.all(Array.from({ length: visitors }, visit));
agent.destroy();
parentPort?.postMessage({ outcomes } satisfies Hammered);
