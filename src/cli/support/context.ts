import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../model/failure.ts";
import { packageFolder } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { StartWorker } from "../../runtime/thread.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";

export function programVersion(): string {
  const manifest = readFileSync(join(packageFolder, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Above the flags of the option table in the help of a command. */
export const SETTINGS_HEADING = "Settings:";

/** Everything a command uses from its process, so that tests can replace it. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly clock: Clock;
  /** Only `query -` reads it. */
  readonly stdin?: NodeJS.ReadableStream;
  /** For data only. */
  readonly stdout: NodeJS.WritableStream;
  /** For warnings, progress, logs and errors. */
  readonly stderr: TextOutput;
  /** Aborts on SIGINT or SIGTERM. */
  readonly stopping: AbortSignal;
  /** Removes the signal handlers: SQLite blocks the event loop, so only the default action can end the process. */
  readonly dieOnSignal?: () => void;
  /** How the threads of a command are started; real ones if it is absent. */
  readonly startWorker?: StartWorker;
}

/** Flags that several commands have; a command has those that it adds. */
export interface CommonFlags {
  readonly json?: boolean;
  readonly adopt?: boolean;
  readonly logLevel?: string;
  readonly progress: boolean;
}

export function isTerminal(stream: NodeJS.WritableStream | TextOutput): boolean {
  return "isTTY" in stream && stream.isTTY === true;
}

/** Whether a command draws bars: on a terminal, unless `--no-progress` is given. */
export function hasBars(
  { progress }: Pick<CommonFlags, "progress">,
  { stderr }: Pick<CommandContext, "stderr">,
): boolean {
  return progress && isTerminal(stderr);
}

/** The command ran, but did not sync or compare everything selected. */
export function incompleteFailure(message: string, remedy = "the report lists what is left"): Failure {
  return new Failure(message, { code: "incomplete", remedy });
}

/** To a cron job, exit code 0 means that everything selected is synced. */
export function unfinishedFailure(why: unknown, otherwise: string): Failure {
  return new Failure(`${why instanceof Error ? why.message : otherwise} before its work was done`, {
    family: "retry",
    code: "stopped",
    remedy: "run it again: it resumes where it stopped",
  });
}

/** Ends the program with the exit status of a program that it has run, and prints nothing more. */
export class ChildExit extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the child process ended with ${status}`);
    this.status = status;
  }
}
