import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { runProgram } from "../../../src/cli/program.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { type Ended, startProgram } from "../program-process.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** The program as a user runs it, in a process of its own; the test's own loop stays free to serve it. */
export async function run(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  return startProgram(args, { cwd: temporaryFolder(), ...options }).ended;
}

/** The program inside this process, with everything around it but the world's streams: a tenth of the time. */
export async function runHere(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; clock?: Clock; onTerminal?: boolean } = {},
): Promise<Ended> {
  const stdout = new PassThrough();
  const stderr = Object.assign(new PassThrough(), { isTTY: options.onTerminal === true });
  const status = await runProgram(args, {
    env: options.env ?? {},
    directory: options.cwd ?? temporaryFolder(),
    clock: options.clock ?? systemClock,
    stdout,
    stderr,
    stopping: new AbortController().signal,
  });
  stdout.end();
  stderr.end();
  return { stdout: await text(stdout), stderr: await text(stderr), status };
}
