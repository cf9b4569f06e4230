import { exitCode, Failure } from "../../model/failure.ts";
import type { Stream } from "../../model/streams.ts";

/**
 * How the sync reacts to an error: `stop` ends the run; `forbidden` skips what the profile lacks a scope for; `not_found`
 * means the service does not have it; `retry` may succeed later; `give_up` cannot succeed in this run.
 */
type ErrorClass = "stop" | "forbidden" | "not_found" | "retry" | "give_up";

/** The warehouse has no working writer, and waiting does not help. */
const writerLostCodes: ReadonlySet<string> = new Set([
  "io_error",
  "db_corrupt",
  "db_not_writable",
  "writer_replaced",
  "ingest_died",
]);

/** Failures of storage or of the process: every other series would fail too. */
const fatalCodes: ReadonlySet<string> = new Set([
  ...writerLostCodes,
  "disk_full",
  "db_locked",
  "secret_missing",
]);

/** `successCount`: successful responses so far. Credentials that worked in this run and fail now may work again. */
export function classifyError(error: unknown, successCount: number): ErrorClass {
  if (!(error instanceof Failure)) return "stop";
  if (error.code === "auth_failed" && error.exit === exitCode.credentials && successCount > 0) return "retry";
  if (error.exit === exitCode.credentials || error.family === "bug" || fatalCodes.has(error.code))
    return "stop";
  if (error.code === "stopped" || error.code === "gave_up") return "stop";
  if (error.code === "forbidden") return "forbidden";
  if (error.code === "not_found") return "not_found";
  return error.family === "retry" ? "retry" : "give_up";
}

const invalidResponseCodes: ReadonlySet<string> = new Set([
  "malformed_body",
  "pagination_cycle",
  "conflict",
  "alarm",
  "unproven",
  "doubtful_list",
  "torn_list",
]);

/** The service answered, but with something unusable: a long wait does not help. */
export function isInvalidResponse(error: unknown): boolean {
  return error instanceof Failure && invalidResponseCodes.has(error.code);
}

/** Every other request to the same endpoint would fail in the same way. */
export function affectsWholeEndpoint(error: unknown): boolean {
  return error instanceof Failure && (error.code === "forbidden" || error.code === "auth_failed");
}

/** Only a new process or an operator can give the warehouse a writer again. */
export function isWriterLost(error: unknown): boolean {
  return error instanceof Failure && writerLostCodes.has(error.code);
}

/** Something selected that could not be synced, for the report. */
export interface Problem {
  readonly stream: Stream;
  /** Which part of the stream; undefined: the whole stream. */
  readonly what?: string;
  readonly code: string;
  readonly message: string;
}

export function toProblem(stream: Stream, what: string | undefined, error: unknown): Problem {
  const failure = error instanceof Failure ? error : undefined;
  return {
    stream,
    ...(what === undefined ? {} : { what }),
    code: failure?.code ?? "unexpected",
    message: failure?.summary ?? (error instanceof Error ? error.message : String(error)),
  };
}
