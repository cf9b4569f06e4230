import { exitCode, Failure, type FailureDetails } from "./failure.ts";

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
