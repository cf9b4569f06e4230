import {
  exitCode,
  Failure,
  type FailureCode,
  failureCode,
  policyOf,
  type SyncReaction,
} from "../../model/failure.ts";
import type { Stream } from "../../model/streams.ts";

/** The reactions without the variants that only a few callers need. */
type ErrorClass = Extract<SyncReaction, "stop" | "forbidden" | "not_found" | "retry" | "give_up">;

const classByReaction: Readonly<Record<SyncReaction, ErrorClass>> = {
  stop: "stop",
  end_process: "stop",
  forbidden: "forbidden",
  not_found: "not_found",
  retry: "retry",
  retry_limited: "retry",
  give_up: "give_up",
  give_up_endpoint: "give_up",
};

function reactionTo(error: unknown): SyncReaction {
  return error instanceof Failure ? policyOf(error.code).sync : "stop";
}

/** `successCount`: successful responses so far. If credentials worked before in this run, their failure is retried. */
export function classifyError(error: unknown, successCount: number): ErrorClass {
  if (error instanceof Failure && error.exit === exitCode.credentials)
    return error.code === "auth_failed" && successCount > 0 ? "retry" : "stop";
  return classByReaction[reactionTo(error)];
}

/** The service answered with something unusable, so waiting longer does not help. */
export function isInvalidResponse(error: unknown): boolean {
  return reactionTo(error) === "retry_limited";
}

/** Every other request to the same endpoint would fail in the same way. */
export function affectsWholeEndpoint(error: unknown): boolean {
  const reaction = reactionTo(error);
  return reaction === "forbidden" || reaction === "give_up_endpoint";
}

/** Only a new process or an operator can give the warehouse a writer again. */
export function isWriterLost(error: unknown): boolean {
  return reactionTo(error) === "end_process";
}

/** A failure code, or the code of a problem for which no error was thrown. */
type ProblemCode =
  | FailureCode
  | "unexpected"
  | "unanswered"
  | "shrunken_list"
  | "selector_unknown"
  | "selector_unresolved";

/** Something that the settings select and that could not be synced. Shown in reports and `status`. */
export interface Problem {
  readonly stream: Stream;
  /** Which part of the stream; undefined: the whole stream. */
  readonly what?: string;
  readonly code: ProblemCode;
  readonly message: string;
}

/** Whether both say the same about the same part of a stream. */
export function isSameProblem(a: Problem, b: Problem): boolean {
  return a.stream === b.stream && a.what === b.what && a.code === b.code;
}

/** The message of a problem, with the series or other part that it concerns. */
export function problemText({ what, message }: Problem): string {
  return what === undefined || message.startsWith(what) ? message : `${what}: ${message}`;
}

export function toProblem(stream: Stream, what: string | undefined, error: unknown): Problem {
  return {
    stream,
    ...(what === undefined ? {} : { what }),
    code: failureCode(error),
    message:
      error instanceof Failure ? error.summary : error instanceof Error ? error.message : String(error),
  };
}
