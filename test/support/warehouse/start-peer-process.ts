import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** Another process that uses the same warehouse as the test; see peer-process.ts. */
interface PeerProcess {
  readonly pid: number;
  /** The next line that it prints; `gone` after its end. */
  nextLine(): Promise<string>;
  /** Makes it perform its action once, and returns the line that it prints. */
  act(): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
}

export function startPeerProcess(
  role: "writer" | "reader" | "blocker" | "migrator",
  path: string,
  ...more: string[]
): PeerProcess {
  const script = join(import.meta.dirname, "peer-process.ts");
  const child: ChildProcess = spawn(process.execPath, [script, role, path, ...more], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  if (!child.stdout || !child.stdin || child.pid === undefined) throw new Error("no process");
  const { stdin } = child;
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => {
    const line = await lines.next();
    return line.done ? "gone" : line.value;
  };
  return {
    pid: child.pid,
    nextLine: nextLine,
    act() {
      stdin.write("go\n");
      return nextLine();
    },
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
