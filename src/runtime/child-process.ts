import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  deserialiseFailure,
  type FailureCode,
  type SerialisedFailure,
  serialiseFailure,
} from "../model/failure.ts";

/** On Linux, except for a few ARM systems with larger ones: there a limit is reached later. */
const PAGE_BYTES = 4096;

interface ChildProcessOptions {
  /** Kills the process when it aborts. */
  readonly signal: AbortSignal;
  /** What happens to the output of the process on stderr. */
  readonly stderr?: "inherit" | "ignore";
}

/** The one message of a child process. */
type Report<Result> = { readonly result: Result } | { readonly failure: SerialisedFailure };

/** Runs a module in a child process, which can be killed: for work that cannot be aborted; then it has no result. Throws the failure of its work. */
export async function runChildProcess<Result>(
  file: string,
  args: readonly string[],
  { signal, stderr = "inherit" }: ChildProcessOptions,
): Promise<{ readonly result: Result | undefined; readonly pid: number | undefined }> {
  const child = fork(file, args, {
    stdio: ["ignore", "ignore", stderr, "ipc"],
    execArgv: [...process.execArgv, "--enable-source-maps"],
  });
  let report: Report<Result> | undefined;
  child.once("message", (received) => {
    report = received as Report<Result>;
  });
  const kill = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    await once(child, "close");
  } finally {
    signal.removeEventListener("abort", kill);
  }
  if (report && "failure" in report) throw deserialiseFailure(report.failure);
  return { result: report?.result, pid: child.pid };
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

/** The memory that a process uses now, in bytes; undefined where the system does not report it. */
export function readResidentBytes(pid: number): number | undefined {
  try {
    const [, pages = ""] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
    return Number(pages) * PAGE_BYTES;
  } catch {
    return undefined;
  }
}

/** Called in the child process: sends the result of `work` or its failure to the parent, then exits. */
export async function reportAndExit(work: () => unknown, bugCode: FailureCode): Promise<void> {
  let report: Report<unknown>;
  try {
    report = { result: await work() };
  } catch (error) {
    report = { failure: serialiseFailure(error, bugCode) };
  }
  process.send?.(report, () => process.exit());
}

/** The path of a module near `moduleUrl` that runs in its own thread or process. The build puts them all into one folder. */
export function resolveSiblingModule(name: string, moduleUrl: string): string {
  const file = moduleUrl.endsWith(".ts") ? `${name}.ts` : `./${basename(name)}.js`;
  return fileURLToPath(new URL(file, moduleUrl));
}

/** A built module lies in dist/ itself, whichever folder of src/ it comes from. */
const isBuilt = import.meta.url.endsWith(".js");

/** The clone, or the installed package: the folder of package.json, `config` and the migrations. */
export const packageFolder = fileURLToPath(new URL(isBuilt ? ".." : "../..", import.meta.url));

/** The file that starts the program. */
export const programFile = join(packageFolder, isBuilt ? "dist/cli/main.js" : "src/cli/main.ts");

/** The pages of the dashboard, written by scripts/bundle-pages.ts. */
export const pagesFolder = join(packageFolder, isBuilt ? "dist/pages" : "src/dashboard/bundle");
