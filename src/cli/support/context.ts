import { readFileSync } from "node:fs";
import { exitCode, Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Talk } from "../../telemetry/nonblocking-stderr.ts";

/** As package.json says, which lies two folders above this file both in the source and in the built program. */
export function programVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return manifest.version;
}

/** What the outside world is to a command, so that a test can be the outside world. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly clock: Clock;
  /** Read only by a command that was told to. */
  readonly stdin?: NodeJS.ReadableStream;
  /** Data, and nothing else. */
  readonly stdout: NodeJS.WritableStream;
  /** Talk: warnings, progress, errors. */
  readonly stderr: Talk;
  /** Aborts when the operator asks the program to stop. */
  readonly stopping: AbortSignal;
  /** Lets the next signal end the process at once: for work inside which nothing can be heard, such as SQLite's. */
  readonly dieOnSignal?: () => void;
}

/** A command was given what it cannot take. */
export function usageFailure(message: string, remedy: string): Failure {
  return new Failure(message, { family: "operator", code: "usage", remedy, exit: exitCode.usage });
}
