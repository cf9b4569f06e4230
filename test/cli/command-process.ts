import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

const entry = resolve(import.meta.dirname, "../../src/cli/main.ts");

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

export interface CommandProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** The program in a process of its own, for a test that acts while it runs. */
export function startCommand(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string> },
): CommandProcess {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? "", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit") as Promise<[number | null]>,
  ]).then(([stdout, stderr, [status]]) => ({ stdout, stderr, status }));
  return { child, ended };
}
