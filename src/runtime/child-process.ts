import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** On Linux, except for a few ARM systems with larger ones: there a limit is reached later. */
const PAGE_BYTES = 4096;

interface ChildProcessOptions {
  /** Kills the process when it aborts. */
  readonly signal: AbortSignal;
  /** What happens to the output of the process on stderr. */
  readonly stderr?: "inherit" | "ignore";
}

interface ChildProcessResult<Message> {
  /** The one message that it sent; undefined if it was killed or crashed first. */
  readonly message: Message | undefined;
  readonly pid: number | undefined;
}

/** Runs a module in a child process: for work that cannot be aborted, because a process can be killed. */
export async function runChildProcess<Message>(
  file: string,
  args: readonly string[],
  { signal, stderr = "inherit" }: ChildProcessOptions,
): Promise<ChildProcessResult<Message>> {
  const child = fork(file, args, {
    stdio: ["ignore", "ignore", stderr, "ipc"],
    execArgv: [...process.execArgv, "--enable-source-maps"],
  });
  let message: Message | undefined;
  child.once("message", (received) => {
    message = received as Message;
  });
  const kill = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    await once(child, "close");
  } finally {
    signal.removeEventListener("abort", kill);
  }
  return { message, pid: child.pid };
}

/**
 * Starts a module in a child process that waits for a message. Its output on stdout is a stream, it may use `maxHeapMb` of
 * JavaScript objects, and the caller ends it.
 */
export function startChildProcess(file: string, { maxHeapMb }: { readonly maxHeapMb: number }): ChildProcess {
  return fork(file, [], {
    stdio: ["ignore", "pipe", "ignore", "ipc"],
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${maxHeapMb}`],
  });
}

/** The memory that a process uses now, in bytes; undefined where the system does not tell. */
export function readResidentBytes(pid: number): number | undefined {
  try {
    const [, pages = ""] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
    return Number(pages) * PAGE_BYTES;
  } catch {
    return undefined;
  }
}

/** Called in the child process: sends the result to its parent, then exits. */
export function sendMessageAndExit<Message>(message: Message): void {
  process.send?.(message, () => process.exit());
}

/** The path of a module near `moduleUrl` that runs in its own thread or process. The build puts them all into one folder. */
export function resolveSiblingModule(name: string, moduleUrl: string): string {
  const file = moduleUrl.endsWith(".ts") ? `${name}.ts` : `./${basename(name)}.js`;
  return fileURLToPath(new URL(file, moduleUrl));
}
