import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";

const entry = resolve(import.meta.dirname, "../../src/cli/main.ts");

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  /** Null when a signal ended it. */
  readonly status: number | null;
}

export interface ProgramProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** What it has said so far. */
  readonly said: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<Ended>;
}

/** The program as a user runs it, in a process of its own, with no environment but what is given. Killed with its test. */
export function startProgram(
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): ProgramProcess {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? "", ...keepCompiled(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      said[stream] += text;
    });
  }
  const ended = once(child, "close").then(([status]) => ({ ...said, status: status as number | null }));
  return { child, said, ended };
}

/** Half of a short command's time goes in compiling the sources: see vitest.config.ts. */
function keepCompiled(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
