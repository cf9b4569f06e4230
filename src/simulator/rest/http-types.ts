import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { constants, gzipSync } from "node:zlib";

/** One request, read whole. */
export interface HttpQuestion {
  readonly method: string;
  readonly path: string;
  /** Path and query as they came. */
  readonly target: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The simulator's clock when it came. */
  readonly at: number;
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
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Payload;
}

/** What goes over the wire, byte by byte. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A request and all that is needed to answer it, well or badly. */
export interface HttpExchange {
  readonly question: HttpQuestion;
  /** What the service says on a good day. */
  readonly answer: HttpAnswer;
  /** What it would have said to the same caller, had the query or the moment been another. */
  readonly ask: (query: URLSearchParams, at: number) => HttpAnswer;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Puts the answer of an exchange on the wire: the one door through which every answer leaves. */
export type Send = (exchange: HttpExchange) => void;

export const sendWell: Send = ({ question, answer, response }) => {
  const { status, headers, body } = encode(question, answer);
  response.writeHead(status, headers);
  response.end(body);
};

export function json(status: number, content: string | Payload): HttpAnswer {
  const payload = typeof content === "string" ? new Payload(content) : content;
  return { status, headers: { "content-type": "application/json" }, payload };
}

export function encode(question: HttpQuestion, answer: HttpAnswer): WireAnswer {
  const zip = answer.payload.bytes.length > 256 && acceptsGzip(question.headers["accept-encoding"]);
  const body = zip ? answer.payload.gzipped() : answer.payload.bytes;
  return {
    status: answer.status,
    headers: {
      date: new Date(question.at).toUTCString(),
      ...answer.headers,
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
    .some((offer) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(offer));
}

/** An HTTP answer before compression, as faults read and change it. */
export interface PlainAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}
