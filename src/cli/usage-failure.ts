import { exitCode, Failure } from "../model/failure.ts";

/** A command was given what it cannot take. */
export function usageFailure(message: string, remedy: string): Failure {
  return new Failure(message, { family: "operator", code: "usage", remedy, exit: exitCode.usage });
}
