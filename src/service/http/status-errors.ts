import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { Ask } from "./request.ts";
import type { Concealment } from "./secret-redactor.ts";
import type { Answer } from "./transport.ts";

const LONGEST_EXPLANATION = 300;

/** An object may throw when it is made a text, and then the request would end by its error body. */
function textOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "?";
}

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
    return `${textOf(field)}: ${textOf(why)}`;
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
/** Nor are so many different records of one path, and none of them found. */
const RECORDS_TO_ALARM = 100;
/** The same record at another place of its history is still the same record. */
const placeNames: ReadonlySet<string> = new Set(["timestamp", "size", "startAfter"]);

/** Tells missing records from a fault on the way, or a version of the interface that was withdrawn. */
export class MissingPaths {
  /** Since the last answer of any path. */
  readonly #endpoints = new Set<string>();
  /** What each path has not found since its own last answer. */
  readonly #records = new Map<string, Set<string>>();
  /** What each path found last. */
  readonly #witnesses = new Map<string, Ask>();

  found(ask: Ask): void {
    this.#endpoints.clear();
    this.#records.delete(ask.endpoint);
    // A cursor may die meanwhile, and prove nothing.
    if (ask.query?.startAfter === undefined) this.#witnesses.set(ask.endpoint, ask);
  }

  /** A question that this path has answered before: asked again, it tells missing records from a missing path. */
  witness({ endpoint }: Ask): Ask | undefined {
    return this.#witnesses.get(endpoint);
  }

  /** The failure as it is, or the alarm that takes its place, so that nobody buries all records. */
  missing({ endpoint, params = {}, query = {} }: Ask, failure: Failure): Failure {
    this.#endpoints.add(endpoint);
    const records = this.#records.get(endpoint) ?? new Set();
    this.#records.set(endpoint, records);
    // Beyond the bound one more makes no difference, and memory is finite.
    if (records.size <= RECORDS_TO_ALARM) {
      const named = Object.entries({ ...params, ...query }).filter(([name]) => !placeNames.has(name));
      records.add(JSON.stringify(named));
    }
    if (this.#endpoints.size < PATHS_TO_ALARM && records.size <= RECORDS_TO_ALARM) return failure;
    return new Failure(`${endpoint} finds nothing any more (404)`, {
      family: "retry",
      code: "upstream_version",
      remedy: "check service.baseUrl; the service may have withdrawn version 3 of its interface",
      exit: exitCode.incomplete,
      cause: failure,
    });
  }
}
