import { constants, gzipSync } from "node:zlib";
import type { ApiRequest, ApiResponse } from "../../src/api-server/interceptor.ts";

/** A response as it is sent: its body is bytes. */
export interface PlainResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

export function toPlainResponse(response: ApiResponse): PlainResponse {
  return {
    status: response.status,
    headers: { "content-type": "application/json", ...response.headers },
    body: Buffer.from(response.body),
  };
}

/** Compresses the body if the client accepts it, and adds the headers of every response. */
export function encodeResponse({ headers, nowMs }: ApiRequest, response: PlainResponse): PlainResponse {
  const shouldCompress = response.body.length > 256 && acceptsGzip(headers["accept-encoding"]);
  const body = shouldCompress ? gzipSync(response.body, { level: constants.Z_BEST_SPEED }) : response.body;
  return {
    status: response.status,
    headers: {
      date: new Date(nowMs).toUTCString(),
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
