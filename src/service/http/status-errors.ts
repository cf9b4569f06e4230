import { Failure, type FailureOptions } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { SecretRedactor } from "../../model/secret-redactor.ts";
import { addressOf } from "./network-failures.ts";
import type { TransportResponse } from "./transport.ts";

const MAX_EXPLANATION_LENGTH = 300;

/** Converting an object to a string may throw, and a strange error body must not end the request. */
function toText(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "?";
}

/** What the service, or a gateway before it, answered in place of a page. */
export class StatusFailure extends Failure {
  readonly status: number;
  /** The parameters that the service objects to; empty if it names none. */
  readonly fields: ReadonlySet<string>;

  constructor(message: string, details: FailureOptions, status: number, fields: ReadonlySet<string>) {
    super(message, details);
    this.status = status;
    this.fields = fields;
  }
}

/** Reads the error body of a response. `text`: the service's error message: redacted, one short line. */
function readExplanation(response: TransportResponse, redactor: SecretRedactor) {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder().decode(decodeBody(response.body)));
  } catch {
    return { text: "", fields: new Set<string>() };
  }
  const { message, errors } = (parsed ?? {}) as { message?: unknown; errors?: unknown };
  const entries = (Array.isArray(errors) ? errors : []).map((entry: unknown) => {
    const { field, message: reason } = (entry ?? {}) as { field?: unknown; message?: unknown };
    return { field, text: `${toText(field)}: ${toText(reason)}` };
  });
  const line = [typeof message === "string" ? message : "", ...entries.map(({ text }) => text)]
    .filter((part) => part !== "")
    .join("; ");
  // Redact before truncating: the redactor does not recognise half a secret.
  const printable = redactor.redact(line).replaceAll(/[^\P{C}]+/gu, " ");
  return {
    text: printable === "" ? "" : `: ${printable.slice(0, MAX_EXPLANATION_LENGTH)}`,
    fields: new Set(entries.map(({ field }) => redactor.redact(toText(field)))),
  };
}

export function isServerFailure(status: number): boolean {
  return status >= 500 || status === 408 || status === 425;
}

/** Converts a response other than 200, 401 and 403 into a failure. */
export function failureFromStatus(endpoint: string, response: TransportResponse, redactor: SecretRedactor) {
  const { status } = response;
  const { text: explanation, fields } = readExplanation(response, redactor);
  const fail = (message: string, details: FailureOptions) =>
    new StatusFailure(message, details, status, fields);
  if (status >= 200 && status < 300)
    return fail(`${endpoint} answered ${status} instead of a page`, { code: "malformed_body" });
  if (status >= 300 && status < 400) {
    const remedy = "set service.baseUrl to the address of the service itself";
    const message = `${endpoint} redirects (${status}); the client does not follow redirects`;
    return fail(message, { code: "redirect_refused", remedy });
  }
  if (status === 404) return fail(`${endpoint} does not exist (404)${explanation}`, { code: "not_found" });
  if (status === 409)
    return fail(`${endpoint} reported a conflict (409)${explanation}`, { code: "conflict" });
  if (status === 429) return fail("the service limits the request rate (429)", { code: "too_many_requests" });
  if (isServerFailure(status))
    return fail(`${endpoint} failed at the service (${status})`, { code: "server_failure" });
  return fail(`the service rejected the request to ${endpoint} (${status})${explanation}`, {
    code: "rejected",
    remedy: "check the settings; if they are correct, the service has changed: update mds-sync",
  });
}

/** Only this endpoint fails: the others answer. */
export function deadEndpointFailure(endpoint: string): Failure {
  return new Failure(`${endpoint} keeps failing while other endpoints answer`, {
    code: "endpoint_failing",
    remedy: "the rest is synced; run again later, and if it lasts, contact the service's operator",
  });
}

/** So many records, or paths, are missing that the paths themselves must be. */
export function withdrawnFailure(endpoint: string, cause: Failure): Failure {
  return new Failure(`${endpoint} answers every request with 404`, {
    code: "upstream_version",
    remedy: "check service.baseUrl; the service may have withdrawn version 3 of its API",
    cause,
  });
}

/** The circuit breaker stayed open for as long as a request may wait. */
export function unreachableFailure(
  setting: "service.baseUrl" | "service.authUrl",
  url: URL,
  waitedMs: number,
  /** Of any request: it has the cause. */
  lastFailure: Failure | undefined,
): Failure {
  const isData = setting === "service.baseUrl";
  const who = `${isData ? "the service" : "the token endpoint"} at ${addressOf(url)}`;
  const why = lastFailure ? `; last failure: ${lastFailure.message}` : "";
  return new Failure(`${who} has not responded for ${waitedMs / 60_000} minutes${why}`, {
    code: isData ? "service_unreachable" : "auth_unreachable",
    remedy: `${lastFailure?.remedy ?? `check the network and ${setting}`}; the sync retries automatically`,
  });
}
