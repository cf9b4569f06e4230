import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { ServiceRequest } from "./request.ts";
import type { SecretRedactor } from "./secret-redactor.ts";
import type { TransportResponse } from "./transport.ts";

const MAX_EXPLANATION_LENGTH = 300;

/** Converting an object to a string may throw, and a strange error body must not end the request. */
function toText(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "?";
}

/** Extracts the service's error message from the response body: redacted, one short line. */
function readExplanation(response: TransportResponse, redactor: SecretRedactor): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder().decode(decodeBody(response.body)));
  } catch {
    return "";
  }
  const { message, errors } = (parsed ?? {}) as { message?: unknown; errors?: unknown };
  const fields = (Array.isArray(errors) ? errors : []).map((entry: unknown) => {
    const { field, message: reason } = (entry ?? {}) as { field?: unknown; message?: unknown };
    return `${toText(field)}: ${toText(reason)}`;
  });
  const line = [typeof message === "string" ? message : "", ...fields]
    .filter((part) => part !== "")
    .join("; ");
  // Redact before truncating: the redactor does not recognise half a secret.
  const printable = redactor.redact(line).replaceAll(/[^\P{C}]+/gu, " ");
  return printable === "" ? "" : `: ${printable.slice(0, MAX_EXPLANATION_LENGTH)}`;
}

/** Converts a response other than 200, 401 and 403 into a failure. */
export function failureFromStatus(
  endpoint: string,
  response: TransportResponse,
  redactor: SecretRedactor,
): Failure {
  const { status } = response;
  const explanation = readExplanation(response, redactor);
  if (status >= 200 && status < 300) {
    return new Failure(`${endpoint} answered ${status} instead of a page`, {
      family: "retry",
      code: "malformed_body",
    });
  }
  if (status >= 300 && status < 400) {
    return new Failure(`${endpoint} redirects (${status}); the client does not follow redirects`, {
      family: "operator",
      code: "redirect_refused",
      remedy: "set service.baseUrl to the address of the service itself",
      exit: exitCode.incomplete,
    });
  }
  if (status === 404) {
    return new Failure(`${endpoint} does not exist (404)${explanation}`, {
      family: "operator",
      code: "not_found",
      exit: exitCode.incomplete,
    });
  }
  if (status === 409) {
    return new Failure(`${endpoint} reported a conflict (409)${explanation}`, {
      family: "retry",
      code: "conflict",
    });
  }
  if (status === 429) {
    return new Failure("the service limits the request rate (429)", {
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
  return new Failure(`the service rejected the request to ${endpoint} (${status})${explanation}`, {
    family: "operator",
    code: "rejected",
    remedy: "check the settings; if they are correct, the service has changed: update mds-sync",
    exit: exitCode.incomplete,
  });
}

/** When this many different paths answer 404 and none succeeds, the service is at fault, not the records. */
const MISSING_PATHS_FOR_ALARM = 3;
/** The same holds for this many different records of one path. */
const MISSING_RECORDS_FOR_ALARM = 100;
/** These parameters select a page, not a record. */
const pagingParams: ReadonlySet<string> = new Set(["timestamp", "size", "startAfter"]);

/** Distinguishes missing records from a broken path or a withdrawn API version. */
export class NotFoundTracker {
  /** Endpoints that answered 404 since the last success of any endpoint. */
  readonly #missingEndpoints = new Set<string>();
  /** Records per endpoint that answered 404 since the last success of that endpoint. */
  readonly #missingRecords = new Map<string, Set<string>>();
  /** The last successful request per endpoint. */
  readonly #lastFound = new Map<string, ServiceRequest>();

  recordFound(request: ServiceRequest): void {
    this.#missingEndpoints.clear();
    this.#missingRecords.delete(request.endpoint);
    // A request with a cursor proves nothing later, because the cursor may have expired.
    if (request.query?.startAfter === undefined) this.#lastFound.set(request.endpoint, request);
  }

  /** The last request that this endpoint answered; sending it again shows whether the path still exists. */
  lastFoundRequest({ endpoint }: ServiceRequest): ServiceRequest | undefined {
    return this.#lastFound.get(endpoint);
  }

  /** Returns the failure, or `upstream_version` in its place, so that the sync does not mark every record as missing. */
  recordNotFound({ endpoint, params = {}, query = {} }: ServiceRequest, failure: Failure): Failure {
    this.#missingEndpoints.add(endpoint);
    const records = this.#missingRecords.get(endpoint) ?? new Set();
    this.#missingRecords.set(endpoint, records);
    // The set is bounded: more records would not change the decision.
    if (records.size <= MISSING_RECORDS_FOR_ALARM) {
      const recordParams = Object.entries({ ...params, ...query }).filter(
        ([name]) => !pagingParams.has(name),
      );
      records.add(JSON.stringify(recordParams));
    }
    if (this.#missingEndpoints.size < MISSING_PATHS_FOR_ALARM && records.size <= MISSING_RECORDS_FOR_ALARM)
      return failure;
    return new Failure(`${endpoint} answers every request with 404`, {
      family: "retry",
      code: "upstream_version",
      remedy: "check service.baseUrl; the service may have withdrawn version 3 of its API",
      exit: exitCode.incomplete,
      cause: failure,
    });
  }
}
