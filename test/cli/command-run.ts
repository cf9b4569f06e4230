import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { temporaryFolder } from "../support/temporary-folder.ts";

const entry = resolve(import.meta.dirname, "../../src/cli/main.ts");

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

/** The program as a user runs it, in a process of its own; the test's own loop stays free to serve it. */
export async function run(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: options.cwd ?? temporaryFolder(),
    env: { PATH: process.env.PATH ?? "", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { stdout, stderr, status };
}
