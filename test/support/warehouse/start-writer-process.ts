import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** A real process beside the test; see writer-process.ts. */
export interface Holder {
  readonly pid: number;
  /** The next line that it says. */
  next(): Promise<string>;
  /** Asks it to act, and waits for what it says. */
  act(): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Kills it, and waits until it is gone. */
  kill(): Promise<void>;
}

export function startHolder(
  role: "writer" | "reader" | "blocker" | "migrator",
  path: string,
  ...more: string[]
): Holder {
  const script = join(import.meta.dirname, "writer-process.ts");
  const child: ChildProcess = spawn(process.execPath, [script, role, path, ...more], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await gone;
  });
  if (!child.stdout || !child.stdin || child.pid === undefined) throw new Error("no process");
  const { stdin } = child;
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const line = await lines.next();
    return line.done ? "gone" : line.value;
  };
  return {
    pid: child.pid,
    next,
    act() {
      stdin.write("go\n");
      return next();
    },
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
