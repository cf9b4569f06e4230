import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { errorBody } from "../../../src/api-server/api-error.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { PlainResponse } from "../plain-response.ts";

export function errorResponse(status: number, message: string, nowMs: number): PlainResponse {
  return jsonResponse(status, errorBody(status, message, nowMs), nowMs);
}

export function jsonResponse(status: number, json: string, nowMs: number): PlainResponse {
  const headers = { "content-type": "application/json", date: formatHttpDate(nowMs) };
  return { status, headers, body: Buffer.from(json) };
}

export function formatHttpDate(ms: number): string {
  return new Date(ms).toUTCString();
}

/** The header Retry-After: its form, and how many milliseconds it asks for. */
export interface RetryAfter {
  readonly retryAfter?: keyof typeof RETRY_AFTER_FORMS;
  readonly wait?: number;
}

const RETRY_AFTER_FORMS = {
  seconds: (waitMs: number) => String(Math.ceil(waitMs / 1000)),
  imf: (waitMs: number, nowMs: number) => formatHttpDate(nowMs + waitMs),
  rfc850(waitMs: number, nowMs: number) {
    const weekday = new Date(nowMs + waitMs).toLocaleDateString("en-US", {
      weekday: "long",
      timeZone: "UTC",
    });
    return formatHttpDate(nowMs + waitMs).replace(/^\w+, (\d+) (\w+) \d\d(\d\d)/, `${weekday}, $1-$2-$3`);
  },
  asctime: (waitMs: number, nowMs: number) =>
    formatHttpDate(nowMs + waitMs)
      .replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT$/, "$1 $3 $2 $5 $4")
      .replace(/ 0(\d) /, "  $1 "),
  past: (waitMs: number, nowMs: number) => formatHttpDate(nowMs - waitMs),
  garbage: () => "when the moon is full",
  negative: () => "-7",
  exponent: () => "1e9",
};
export const retryAfterForms = Object.keys(RETRY_AFTER_FORMS) as (keyof typeof RETRY_AFTER_FORMS)[];

export function retryAfterHeaders(
  { retryAfter, wait = 7_000 }: RetryAfter,
  nowMs: number,
): Record<string, string> {
  return retryAfter ? { "retry-after": RETRY_AFTER_FORMS[retryAfter](wait, nowMs) } : {};
}

export function writeResponse(rawResponse: ServerResponse, { status, headers, body }: PlainResponse): void {
  // A 204 must not have a content-length, because it has no body.
  const { "content-length": length, ...others } = headers;
  rawResponse.writeHead(status, status === 204 || length === undefined ? others : headers);
  rawResponse.end(body);
}

/**
 * Waits for `ms`, or until the client disconnects. The manual clock of tests does not advance while a request is pending;
 * `beginWait` lets it advance during this wait.
 */
export function waitWhileConnected(clock: Clock, socket: Socket, ms: number): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  const resume = clock.beginWait();
  return new Promise((resolve) => {
    const end = () => {
      socket.off("close", end);
      cancel();
      resume();
      resolve();
    };
    const cancel = Number.isFinite(ms) ? clock.after(ms, end) : () => {};
    socket.on("close", end);
  });
}
