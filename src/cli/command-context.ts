import type { Clock } from "../runtime/clock.ts";
import type { Talk } from "../telemetry/bounded-talk.ts";

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
