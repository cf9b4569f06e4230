import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { expect } from "vitest";
import { python } from "../has-tool.ts";

export const pythonClient = resolve(import.meta.dirname, "../../../clients/python");

interface PythonOptions {
  readonly input?: unknown;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Runs a script with the Python client, which must not complain; returns what it prints. */
export function runPython(
  script: string,
  args: readonly string[] = [],
  { input, env = {}, cwd }: PythonOptions = {},
): string {
  const { stdout, stderr } = spawnSync(python, ["-W", "ignore", "-c", script, ...args], {
    encoding: "utf8",
    cwd,
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    env: { PYTHONPATH: pythonClient, PYTHONDONTWRITEBYTECODE: "1", ...env },
  });
  expect(stderr).toBe("");
  return stdout;
}

/** What an expression gives: a table, any other value, or an error. */
export interface PythonAnswer {
  readonly columns?: readonly string[];
  readonly rows?: readonly (readonly unknown[])[];
  readonly value?: unknown;
  readonly error?: string;
}

const blockRunner = resolve(import.meta.dirname, "../../clients/run-blocks.py");

/** Runs all blocks on a warehouse in one process. `without`: a module that it shall not find; `client`: another than the source. */
export function runBlocks(
  source: string,
  blocks: Readonly<Record<string, string>>,
  { without, client = pythonClient }: { readonly without?: string; readonly client?: string } = {},
): Record<string, PythonAnswer> {
  const { status, stdout, stderr } = spawnSync(python, [blockRunner], {
    input: JSON.stringify({ source, blocks, without }),
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: "1" },
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Record<string, PythonAnswer>;
}
