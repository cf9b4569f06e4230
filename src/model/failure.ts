/**
 * Decides what happens next: `retry` goes away with time, `operator` needs a person (the remedy says what to do),
 * `bug` is a defect of this program.
 */
type FailureFamily = "retry" | "operator" | "bug";

/** Cron jobs and service managers depend on these. */
export const exitCode = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  credentials: 3,
  incomplete: 4,
  tryLater: 75,
} as const;
export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

export interface FailureOptions {
  family: FailureFamily;
  /** A machine-readable name, stable across releases: `credentials_rejected`, `pagination_cycle`. */
  code: string;
  /** What to do about it, in one sentence. */
  remedy?: string;
  exit?: ExitCode;
  cause?: unknown;
}

/** The error class that modules throw on purpose. Its message never contains a secret. */
export class Failure extends Error {
  readonly family: FailureFamily;
  readonly code: string;
  readonly remedy: string | undefined;
  readonly exit: ExitCode;

  constructor(message: string, details: FailureOptions) {
    super(message, { cause: details.cause });
    this.name = "Failure";
    this.family = details.family;
    this.code = details.code;
    this.remedy = details.remedy;
    this.exit = details.exit ?? (details.family === "retry" ? exitCode.tryLater : exitCode.unexpected);
  }

  /** Message and remedy in one line, for the operator. */
  get summary(): string {
    return this.remedy ? `${this.message}: ${this.remedy}` : this.message;
  }
}

/** A failure that can be sent to another thread or process. */
export interface SerialisedFailure extends Omit<FailureOptions, "cause"> {
  readonly message: string;
  readonly stack?: string | undefined;
}

/** Any error that is not a `Failure` becomes a `bug` with the code `bugCode`. */
export function serialiseFailure(error: unknown, bugCode: string): SerialisedFailure {
  if (error instanceof Failure) {
    const { message, family, code, remedy, exit } = error;
    return { message, family, code, exit, ...(remedy === undefined ? {} : { remedy }) };
  }
  const isError = error instanceof Error;
  return {
    message: isError ? error.message : String(error),
    stack: isError ? error.stack : undefined,
    family: "bug",
    code: bugCode,
    exit: exitCode.unexpected,
  };
}

export function deserialiseFailure({ message, stack, ...details }: SerialisedFailure): Failure {
  const failure = new Failure(message, details);
  if (stack !== undefined) failure.stack = stack;
  return failure;
}

const systemErrorRemedies: Readonly<Record<string, string>> = {
  EAGAIN: "raise the limit of threads (TasksMax, ulimit -u), or add memory",
  EMFILE: "raise the limit of open files (LimitNOFILE, ulimit -n)",
  ENFILE: "raise the system's limit of open files (fs.file-max)",
};

/** The system refused to start a thread: for the operator to solve, not a bug. */
export function threadStartFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error);
  const code = /\bE[A-Z]+\b/.exec(text)?.[0] ?? text;
  return new Failure(`cannot start a thread (${code})`, {
    family: "operator",
    code: "no_thread",
    remedy: systemErrorRemedies[code],
    cause: error,
  });
}
