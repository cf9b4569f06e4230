import { exitCode, Failure } from "../../model/failure.ts";
import type { Stream } from "../../model/streams.ts";

/**
 * What to do about a failure:
 * `stop` nothing can go on; `forbidden` the profile lacks a scope, the rest goes on; `absent` the service has no such
 * thing; `later` it may heal by waiting; `refused` it will not heal in this run.
 */
export type Verdict = "stop" | "forbidden" | "absent" | "later" | "refused";

/** Nobody can write any more, and waiting does not mend it. */
const storageLost: ReadonlySet<string> = new Set([
  "io_error",
  "db_corrupt",
  "db_not_writable",
  "writer_replaced",
  "ingest_died",
]);

/** Failures of storage and of the process itself: no other series would fare better. */
const fatal: ReadonlySet<string> = new Set([...storageLost, "disk_full", "db_locked", "secret_missing"]);

/** `answers`: how often the service has answered in this run. Tokens that worked and are refused now may work again. */
export function judge(error: unknown, answers: number): Verdict {
  if (!(error instanceof Failure)) return "stop";
  if (error.code === "auth_failed" && error.exit === exitCode.credentials && answers > 0) return "later";
  if (error.exit === exitCode.credentials || error.family === "bug" || fatal.has(error.code)) return "stop";
  if (error.code === "stopped" || error.code === "gave_up") return "stop";
  if (error.code === "forbidden") return "forbidden";
  if (error.code === "not_found") return "absent";
  return error.family === "retry" ? "later" : "refused";
}

const answered: ReadonlySet<string> = new Set([
  "malformed_body",
  "pagination_cycle",
  "conflict",
  "alarm",
  "unproven",
  "doubtful_list",
  "torn_list",
]);

/** The service did answer, only not with what was asked for: waiting long does not help, and neither does patience. */
export function isAnswered(error: unknown): boolean {
  return error instanceof Failure && answered.has(error.code);
}

/** It is not about the one record that was asked for: whatever else is asked of the endpoint fares the same. */
export function isOfWholeEndpoint(error: unknown): boolean {
  return error instanceof Failure && (error.code === "forbidden" || error.code === "auth_failed");
}

/** True where only a new process, or a person, gives the warehouse a writer again. */
export function isStorageLost(error: unknown): boolean {
  return error instanceof Failure && storageLost.has(error.code);
}

/** Something selected that could not be synced, as the report names it. */
export interface Problem {
  readonly stream: Stream;
  /** Which part of the stream; undefined: all of it. */
  readonly what?: string;
  readonly code: string;
  readonly message: string;
}

export function problemOf(stream: Stream, what: string | undefined, error: unknown): Problem {
  const failure = error instanceof Failure ? error : undefined;
  return {
    stream,
    ...(what === undefined ? {} : { what }),
    code: failure?.code ?? "unexpected",
    message: failure?.line ?? (error instanceof Error ? error.message : String(error)),
  };
}
