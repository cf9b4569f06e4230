import { decodeBody } from "../model/body.ts";
import { exitCode, Failure } from "../model/failure.ts";
import type { Concealment } from "./concealment.ts";
import type { Answer } from "./transport.ts";

const LONGEST_EXPLANATION = 300;

/** The service's own words about a request that it did not accept, without secrets and in one short line. */
function explanation(answer: Answer, concealment: Concealment): string {
  let said: unknown;
  try {
    said = JSON.parse(new TextDecoder().decode(decodeBody(answer.body)));
  } catch {
    return "";
  }
  const { message, errors } = (said ?? {}) as { message?: unknown; errors?: unknown };
  const fields = (Array.isArray(errors) ? errors : []).map((each: unknown) => {
    const { field, message: why } = (each ?? {}) as { field?: unknown; message?: unknown };
    return `${String(field ?? "?")}: ${String(why ?? "?")}`;
  });
  const line = [typeof message === "string" ? message : "", ...fields]
    .filter((part) => part !== "")
    .join("; ");
  // Cleaned before it is cut: half a secret would not be recognised.
  const printable = concealment.clean(line).replaceAll(/[^\P{C}]+/gu, " ");
  return printable === "" ? "" : `: ${printable.slice(0, LONGEST_EXPLANATION)}`;
}

/** What an answer other than 200, 401 and 403 means. */
export function statusFailure(endpoint: string, answer: Answer, concealment: Concealment): Failure {
  const { status } = answer;
  const words = explanation(answer, concealment);
  if (status >= 200 && status < 300) {
    return new Failure(`${endpoint} answered ${status} without a page`, {
      family: "retry",
      code: "malformed_body",
    });
  }
  if (status >= 300 && status < 400) {
    return new Failure(`${endpoint} redirects (${status}), and redirects are not followed`, {
      family: "operator",
      code: "redirect_refused",
      remedy: "set service.baseUrl to the address that really answers",
      exit: exitCode.incomplete,
    });
  }
  if (status === 404) {
    return new Failure(`${endpoint} does not exist (404)${words}`, {
      family: "operator",
      code: "not_found",
      exit: exitCode.incomplete,
    });
  }
  if (status === 409) {
    return new Failure(`${endpoint} met a conflict (409)${words}`, { family: "retry", code: "conflict" });
  }
  if (status === 429) {
    return new Failure("the service asks for fewer requests (429)", {
      family: "retry",
      code: "too_many_requests",
    });
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new Failure(`${endpoint} failed at the service (${status})`, {
      family: "retry",
      code: "server_failure",
    });
  }
  return new Failure(`${endpoint} was refused (${status})${words}`, {
    family: "operator",
    code: "rejected",
    remedy: "the request is not what the service wants; a new release may be needed",
    exit: exitCode.incomplete,
  });
}

/** So many different paths gone, and none found, is not about records any more. */
const PATHS_TO_ALARM = 3;

/** Tells one missing record from a version of the interface that was withdrawn. */
export class MissingPaths {
  readonly #endpoints = new Set<string>();

  found(): void {
    this.#endpoints.clear();
  }

  /** The failure as it is, or the alarm that takes its place, so that nobody buries all records. */
  missing(endpoint: string, failure: Failure): Failure {
    this.#endpoints.add(endpoint);
    if (this.#endpoints.size < PATHS_TO_ALARM) return failure;
    return new Failure("every path of the service is gone (404)", {
      family: "operator",
      code: "upstream_version",
      remedy: "check service.baseUrl; the service may have withdrawn version 3 of its interface",
      exit: exitCode.incomplete,
    });
  }
}
