import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

interface HelperOptions {
  /** The process is killed when this aborts. */
  readonly stopping: AbortSignal;
  /** Where what it prints on stderr goes. */
  readonly stderr?: "inherit" | "ignore";
}

export interface HelperEnd<Report> {
  /** What it said, once, before it ended; nothing where it was killed or broke off. */
  readonly report: Report | undefined;
  readonly pid: number | undefined;
}

/** Runs one of our files in a process of its own: for work that cannot be interrupted, which a process can. */
export async function runHelper<Report>(
  file: string,
  args: readonly string[],
  { stopping, stderr = "inherit" }: HelperOptions,
): Promise<HelperEnd<Report>> {
  const child = fork(file, args, { stdio: ["ignore", "ignore", stderr, "ipc"] });
  let report: Report | undefined;
  child.once("message", (message) => {
    report = message as Report;
  });
  const stop = () => void child.kill("SIGKILL");
  stopping.addEventListener("abort", stop, { once: true });
  if (stopping.aborted) stop();
  try {
    await once(child, "close");
  } finally {
    stopping.removeEventListener("abort", stop);
  }
  return { report, pid: child.pid };
}

/** What a helper says to the process that started it, as its last word. */
export function reportAndEnd<Report>(report: Report): void {
  process.send?.(report, () => process.exit());
}

/** The path of a file of ours beside the one that asks, by the name that it has there: run in place as TypeScript, or built. */
export function ownFile(name: string, asker: string): string {
  return fileURLToPath(new URL(`${name}${asker.endsWith(".ts") ? ".ts" : ".js"}`, asker));
}
