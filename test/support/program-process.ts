import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { programEntry } from "./build-program.ts";

export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Null if a signal ended it. */
  readonly status: number | null;
}

export interface ProgramProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** What it has printed so far. */
  readonly output: { readonly stdout: string; readonly stderr: string };
  readonly result: Promise<ProgramResult>;
}

/**
 * Runs the program as a user does, in its own process, with only the given environment. Killed when the test
 * ends.
 */
export function startProgram(
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly entry?: string;
    /** Takes its stderr; default: `output` has it. */
    readonly stderr?: number | undefined;
  },
): ProgramProcess {
  const child = spawn(process.execPath, [options.entry ?? programEntry, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? "", ...compileCacheEnv(), ...options.env },
    stdio: ["ignore", "pipe", options.stderr ?? "pipe"],
  }) as ProgramProcess["child"];
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text;
    });
  }
  const result = once(child, "close").then(([status]) => ({ ...output, status: status as number | null }));
  return { child, output, result };
}

/** The first lines that it prints: NAME=value each. */
export async function readSettings({ child }: ProgramProcess, count: number) {
  const settings: Record<string, string> = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const [name = "", ...value] = line.split("=");
    settings[name] = value.join("=");
    if (Object.keys(settings).length === count) break;
  }
  return settings;
}

/** The settings of a client, as `serve` and `simulate` print them. */
export const clientSettings = ["MDS_BASE_URL", "MDS_WS_URL", "MDS_CLIENT_ID", "MDS_CLIENT_SECRET"];

/** A process spends most of its start compiling the sources, once per thread: see vitest.config.ts. */
export function compileCacheEnv(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
