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

/** A failure in a form that crosses threads and processes. */
export interface SentFailure extends Omit<FailureDetails, "cause"> {
  readonly message: string;
  readonly stack?: string | undefined;
}

/** Whatever is no failure that we know of is a bug of ours, under the code of the place where it came up. */
export function sendFailure(error: unknown, bugCode: string): SentFailure {
  if (error instanceof Failure) {
    const { message, family, code, remedy, exit } = error;
    return { message, family, code, exit, ...(remedy === undefined ? {} : { remedy }) };
  }
  const known = error instanceof Error;
  return {
    message: known ? error.message : String(error),
    stack: known ? error.stack : undefined,
    family: "bug",
    code: bugCode,
    exit: exitCode.unexpected,
  };
}

export function receiveFailure({ message, stack, ...details }: SentFailure): Failure {
  const failure = new Failure(message, details);
  if (stack !== undefined) failure.stack = stack;
  return failure;
}

const remedies: Readonly<Record<string, string>> = {
  EAGAIN: "raise the limit of threads (TasksMax, ulimit -u), or give it more memory",
  EMFILE: "raise the limit of open files (LimitNOFILE, ulimit -n)",
  ENFILE: "raise the system's limit of open files (fs.file-max)",
};

/** The system refused a thread of ours. Nothing is wrong with the program, so nobody is asked to report it. */
export function threadFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error);
  const code = /\bE[A-Z]+\b/.exec(text)?.[0] ?? text;
  return new Failure(`no thread could be started (${code})`, {
    family: "operator",
    code: "no_thread",
    remedy: remedies[code],
    cause: error,
  });
}
