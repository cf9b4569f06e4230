import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { constants, gzipSync } from "node:zlib";
import type { Quirks } from "../market/quirks.ts";

/** One request, completely received. */
export interface SimulatorRequest {
  readonly method: string;
  readonly path: string;
  /** Path and query as received. */
  readonly target: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** When the request arrived, by the clock of the simulator. */
  readonly nowMs: number;
}

/** The body of a response, rendered when it is first read. */
export class Payload {
  readonly #render: () => string | Buffer;
  #bytes: Buffer | undefined;

  constructor(render: () => string | Buffer) {
    this.#render = render;
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.#render());
    return this.#bytes;
  }
}

/** A response before compression. */
export interface SimulatorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Payload;
}

/** A request and its response, before it is sent. */
export interface HttpExchange {
  readonly request: SimulatorRequest;
  readonly response: SimulatorResponse;
  /** The response to the same caller with another query or at another time. */
  readonly respondTo: (query: URLSearchParams, nowMs: number) => SimulatorResponse;
  readonly rawResponse: ServerResponse;
}

export function createJsonResponse(status: number, content: string | Payload): SimulatorResponse {
  const payload = typeof content === "string" ? new Payload(() => content) : content;
  return { status, headers: { "content-type": "application/json" }, payload };
}

/** A page with these records. `nextId`: undefined for a page without it. */
export function formatPage(content: readonly object[], nextId?: string | null): string {
  return JSON.stringify({ content, nextId });
}

/** The `nextId` of a page that ends with the record `lastId`. */
export function nextIdOf(
  lastPage: Quirks["lastPage"],
  hasMore: boolean,
  lastId: string | undefined,
): string | null | undefined {
  if (hasMore || lastPage === "own-id") return lastId ?? null;
  return { null: null, empty: "", absent: undefined }[lastPage];
}

export function encodeResponse(request: SimulatorRequest, response: SimulatorResponse): PlainResponse {
  const { bytes } = response.payload;
  const shouldCompress = bytes.length > 256 && acceptsGzip(request.headers["accept-encoding"]);
  const body = shouldCompress ? gzipSync(bytes, { level: constants.Z_BEST_SPEED }) : bytes;
  return {
    status: response.status,
    headers: {
      date: new Date(request.nowMs).toUTCString(),
      ...response.headers,
      ...(shouldCompress ? { "content-encoding": "gzip" } : {}),
      vary: "accept-encoding",
      "content-length": String(body.length),
    },
    body,
  };
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? "")
    .split(",")
    .some((encoding) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(encoding));
}

/** A response as it is sent: its body is bytes instead of a Payload. */
export interface PlainResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}
