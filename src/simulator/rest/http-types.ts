import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { constants, gzipSync } from "node:zlib";

/** One request, read whole. */
export interface SimulatorRequest {
  readonly method: string;
  readonly path: string;
  /** Path and query as they came. */
  readonly target: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The simulator's clock when it came. */
  readonly nowMs: number;
}

/** Bytes to send; the compressed form is made once and kept with them. */
export class Payload {
  readonly bytes: Buffer;
  #gzipped: Buffer | undefined;

  constructor(content: string | Buffer) {
    this.bytes = typeof content === "string" ? Buffer.from(content) : content;
  }

  gzipped(): Buffer {
    this.#gzipped ??= gzipSync(this.bytes, { level: constants.Z_BEST_SPEED });
    return this.#gzipped;
  }

  get size(): number {
    return this.bytes.length + (this.#gzipped?.length ?? 0);
  }
}

/** What is said: before compression. */
export interface SimulatorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Payload;
}

/** What goes over the wire, byte by byte. */
export interface EncodedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A request and all that is needed to answer it, well or badly. */
export interface HttpExchange {
  readonly request: SimulatorRequest;
  /** What the service says on a good day. */
  readonly response: SimulatorResponse;
  /** What it would have said to the same caller, had the query or the moment been another. */
  readonly fetchOriginal: (query: URLSearchParams, at: number) => SimulatorResponse;
  readonly rawRequest: IncomingMessage;
  readonly rawResponse: ServerResponse;
}

/** Puts the answer of an exchange on the wire: the one door through which every answer leaves. */
export type SendResponse = (exchange: HttpExchange) => void;

export const sendWithoutFaults: SendResponse = ({
  request: question,
  response: answer,
  rawResponse: response,
}) => {
  const { status, headers, body } = encodeResponse(question, answer);
  response.writeHead(status, headers);
  response.end(body);
};

export function createJsonResponse(status: number, content: string | Payload): SimulatorResponse {
  const payload = typeof content === "string" ? new Payload(content) : content;
  return { status, headers: { "content-type": "application/json" }, payload };
}

export function encodeResponse(request: SimulatorRequest, response: SimulatorResponse): EncodedResponse {
  const zip = response.payload.bytes.length > 256 && acceptsGzip(request.headers["accept-encoding"]);
  const body = zip ? response.payload.gzipped() : response.payload.bytes;
  return {
    status: response.status,
    headers: {
      date: new Date(request.nowMs).toUTCString(),
      ...response.headers,
      ...(zip ? { "content-encoding": "gzip" } : {}),
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

/** An HTTP answer before compression, as faults read and change it. */
export interface PlainResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}
