import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { constants, gzipSync } from "node:zlib";

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

/** The body of a response, rendered when it is first read. Caches its compressed form. */
export class Payload {
  readonly #content: string | Buffer | (() => Buffer);
  #bytes: Buffer | undefined;
  #gzipped: Buffer | undefined;

  constructor(content: string | Buffer | (() => Buffer)) {
    this.#content = content;
  }

  get bytes(): Buffer {
    this.#bytes ??= toBuffer(typeof this.#content === "function" ? this.#content() : this.#content);
    return this.#bytes;
  }

  gzipped(): Buffer {
    this.#gzipped ??= gzipSync(this.bytes, { level: constants.Z_BEST_SPEED });
    return this.#gzipped;
  }

  get size(): number {
    return this.bytes.length + (this.#gzipped?.length ?? 0);
  }
}

function toBuffer(content: string | Buffer): Buffer {
  return typeof content === "string" ? Buffer.from(content) : content;
}

/** A response before compression. */
export interface SimulatorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Payload;
}

/** A request, and what is needed to respond with or without faults. */
interface HttpExchange {
  readonly request: SimulatorRequest;
  /** The response without faults. */
  readonly response: SimulatorResponse;
  /** The response without faults to the same caller with another query or at another time. */
  readonly fetchOriginal: (query: URLSearchParams, nowMs: number) => SimulatorResponse;
  readonly rawRequest: IncomingMessage;
  readonly rawResponse: ServerResponse;
}

/** Sends the response of an exchange. Every response leaves through this function. */
export type SendResponse = (exchange: HttpExchange) => void;

export const sendWithoutFaults: SendResponse = ({ request, response, rawResponse }) => {
  const { status, headers, body } = encodeResponse(request, response);
  rawResponse.writeHead(status, headers);
  rawResponse.end(body);
};

export function createJsonResponse(status: number, content: string | Payload): SimulatorResponse {
  const payload = typeof content === "string" ? new Payload(content) : content;
  return { status, headers: { "content-type": "application/json" }, payload };
}

export function encodeResponse(request: SimulatorRequest, response: SimulatorResponse): PlainResponse {
  const shouldCompress =
    response.payload.bytes.length > 256 && acceptsGzip(request.headers["accept-encoding"]);
  const body = shouldCompress ? response.payload.gzipped() : response.payload.bytes;
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

/** A response as it is sent, and as faults read and change it: its body is bytes instead of a Payload. */
export interface PlainResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}
