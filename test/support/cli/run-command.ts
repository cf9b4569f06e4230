import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { runProgram } from "../../../src/cli/program.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { type ProgramResult, startProgram } from "../program-process.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Runs the program in a child process, so that the test's event loop stays free to serve it. */
export async function runInChild(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<ProgramResult> {
  return startProgram(args, { cwd: temporaryFolder(), ...options }).result;
}

/** Runs the program in this process, which takes a tenth of the time. */
export async function runInProcess(
  args: readonly string[],
  options: {
    env?: Record<string, string>;
    cwd?: string;
    clock?: Clock;
    onTerminal?: boolean;
    stdin?: string;
    stopping?: AbortSignal;
  } = {},
): Promise<ProgramResult> {
  const stdout = new PassThrough();
  const stderr = Object.assign(new PassThrough(), { isTTY: options.onTerminal === true });
  // Read while the program runs: it waits for a reader of more than a few kilobytes.
  const output = Promise.all([text(stdout), text(stderr)]);
  const status = await runProgram(args, {
    env: options.env ?? {},
    directory: options.cwd ?? temporaryFolder(),
    clock: options.clock ?? systemClock,
    stdout,
    stderr,
    ...(options.stdin !== undefined && { stdin: PassThrough.from([options.stdin]) }),
    stopping: options.stopping ?? new AbortController().signal,
    startWorker: startIngestInProcess,
  });
  stdout.end();
  stderr.end();
  const [out, err] = await output;
  return { stdout: out, stderr: err, status };
}
