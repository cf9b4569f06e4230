/**
 * What kind of trouble it is decides what happens next:
 * `retry` heals by waiting, `operator` wants a person (the remedy says what to do), `bug` is ours.
 */
export type FailureFamily = "retry" | "operator" | "bug";

/** The exit codes that cron jobs and service managers lean on. */
export const exitCode = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  credentials: 3,
  incomplete: 4,
  tryLater: 75,
} as const;
export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

export interface FailureDetails {
  family: FailureFamily;
  /** A short machine-readable name, stable across releases: `credentials_rejected`, `pagination_cycle`. */
  code: string;
  /** One sentence that says what to do about it. */
  remedy?: string;
  exit?: ExitCode;
  cause?: unknown;
}

/** The only error class that crosses rooms on purpose. Its message never carries a secret. */
export class Failure extends Error {
  readonly family: FailureFamily;
  readonly code: string;
  readonly remedy: string | undefined;
  readonly exit: ExitCode;

  constructor(message: string, details: FailureDetails) {
    super(message, { cause: details.cause });
    this.name = "Failure";
    this.family = details.family;
    this.code = details.code;
    this.remedy = details.remedy;
    this.exit = details.exit ?? (details.family === "retry" ? exitCode.tryLater : exitCode.unexpected);
  }

  /** The one line that an operator reads. */
  get line(): string {
    return this.remedy ? `${this.message}: ${this.remedy}` : this.message;
  }
}
