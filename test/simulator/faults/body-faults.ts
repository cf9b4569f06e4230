import type { ServerResponse } from "node:http";
import { brotliCompressSync, constants, deflateRawSync, gunzipSync, gzipSync } from "node:zlib";
import { type Conditions, type Fault, httpFault, type Options } from "../fault.ts";
import type { PlainResponse } from "../plain-response.ts";
import { errorResponse, formatHttpDate, type RetryAfter, retryAfterHeaders } from "./responses.ts";

function failure(status: number, retryAfter: RetryAfter, nowMs: number): PlainResponse {
  const response = errorResponse(status, "simulated failure", nowMs);
  return { ...response, headers: { ...response.headers, ...retryAfterHeaders(retryAfter, nowMs) } };
}

/** Responds with this status and the error body of the service. */
export function status(code: number, options: Options<RetryAfter> = {}): Fault {
  return httpFault(`status ${code}`, options, { response: (_, { nowMs }) => failure(code, options, nowMs) });
}

/** Responds with 429 to what exceeds this many requests: per second of the clock, in the last second, or by a token bucket. */
export function requestLimit(
  rate: number,
  options: Options<RetryAfter & { window?: "second" | "sliding" | "bucket" }> = {},
): Fault {
  const { window = "second" } = options;
  let accepted: number[] = [];
  let bucket = rate;
  let refilledAt = 0;
  const accepts = (now: number) => {
    if (window === "bucket") {
      bucket = Math.min(rate, bucket + ((now - refilledAt) * rate) / 1000);
      refilledAt = now;
      if (bucket < 1) return false;
      bucket--;
      return true;
    }
    const since = window === "sliding" ? now - 1000 : Math.floor(now / 1000) * 1000 - 1;
    accepted = accepted.filter((at) => at > since);
    if (accepted.length >= rate) return false;
    accepted.push(now);
    return true;
  };
  return httpFault("requestLimit", options, {
    response: (_, { clock, nowMs }) =>
      accepts(clock.monotonic()) ? undefined : failure(429, options, nowMs),
  });
}

/** Responds with this status while more requests are in flight. */
export function overload(above: number, options: Options<{ code?: number }> = {}): Fault {
  const inFlight = new Set<ServerResponse>();
  return httpFault("overload", options, {
    response(_, { rawResponse, nowMs }) {
      inFlight.add(rawResponse);
      rawResponse.once("close", () => inFlight.delete(rawResponse));
      return inFlight.size <= above ? undefined : failure(options.code ?? 503, {}, nowMs);
    },
  });
}

export function redirect(options: Options<{ location?: string; code?: number }> = {}): Fault {
  const { location = "http://localhost:1/elsewhere", code = 307 } = options;
  return httpFault("redirect", options, {
    response: (_, { nowMs }) => ({
      status: code,
      headers: { location, date: formatHttpDate(nowMs) },
      body: Buffer.of(),
    }),
  });
}

function withBody(
  { headers }: PlainResponse,
  body: string | Uint8Array,
  type = "application/json",
): PlainResponse {
  return { status: 200, headers: { ...headers, "content-type": type }, body: Buffer.from(body) };
}

const CAPTIVE_PORTAL = "<!doctype html><title>Sign in</title><p>Welcome to the airport's free network.";

export const html = (conditions: Conditions = {}): Fault =>
  httpFault("html", conditions, { response: (response) => withBody(response, CAPTIVE_PORTAL, "text/html") });

export const emptyBody = (conditions: Conditions = {}): Fault =>
  httpFault("emptyBody", conditions, { response: (response) => withBody(response, "") });

export const noContent = (conditions: Conditions = {}): Fault =>
  httpFault("noContent", conditions, {
    response: ({ headers }) => ({ status: 204, headers, body: Buffer.of() }),
  });

/** Puts a byte order mark before the JSON. */
export const bom = (conditions: Conditions = {}): Fault =>
  httpFault("bom", conditions, {
    response: (response) => withBody(response, Buffer.concat([Buffer.from("\uFEFF"), response.body])),
  });

export const contentType = (type: string, conditions: Conditions = {}): Fault =>
  httpFault("contentType", conditions, {
    response: (response) => ({ ...response, headers: { ...response.headers, "content-type": type } }),
  });

const ENVELOPES = {
  array: "[]",
  string: '"content"',
  number: "42",
  null: "null",
  "no-content": '{"nextId":null}',
  "content-object": '{"content":{}}',
  "content-null": '{"content":null}',
  "content-string": '{"content":"[]"}',
};

/** Responds with JSON of an unexpected shape. */
export function envelope(shape: keyof typeof ENVELOPES, conditions: Conditions = {}): Fault {
  return httpFault(`envelope ${shape}`, conditions, {
    response: (response) => withBody(response, ENVELOPES[shape]),
  });
}

const EMPTY_LIST = '{"content":[]';

/** Sends a list without records in another form: `content` null, 204, or an object without `content`. */
export function emptyList(form: "null" | "204" | "absent", conditions: Conditions = {}): Fault {
  return httpFault(`emptyList ${form}`, conditions, {
    response(response) {
      if (!Buffer.from(response.body).subarray(0, EMPTY_LIST.length).equals(Buffer.from(EMPTY_LIST))) return;
      if (form === "204") return { status: 204, headers: {}, body: Buffer.of() };
      return withBody(response, form === "null" ? '{"content":null}' : "{}");
    },
  });
}

/**
 * Makes the body contradict its Content-Encoding: truncated gzip, a gzip bomb, a plain body labelled gzip, a wrong CRC, or
 * brotli that the client did not accept. Content-Length stays correct.
 */
export function encoding(
  how: "cut" | "bomb" | "plain" | "crc" | "br",
  options: Options<{ megabytes?: number }> = {},
): Fault {
  return httpFault(`encoding ${how}`, options, {
    encode(response) {
      const isCompressed = response.headers["content-encoding"] === "gzip";
      const plain = isCompressed ? gunzipSync(response.body) : Buffer.from(response.body);
      const body = corruptEncoding(how, options.megabytes ?? 5_000, plain);
      const encoded = {
        "content-encoding": how === "br" ? "br" : "gzip",
        "content-length": String(body.length),
      };
      return { ...response, headers: { ...response.headers, ...encoded }, body };
    },
  });
}

function corruptEncoding(how: string, megabytes: number, body: Buffer): Uint8Array {
  if (how === "plain") return body;
  if (how === "br") return brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
  if (how === "bomb") return createGzipBomb(megabytes);
  const whole = gzipSync(body);
  if (how === "cut") return whole.subarray(0, Math.floor(whole.length * 0.6));
  // A gzip trailer is CRC-32 and length, four bytes each.
  const crc = whole.length - 8;
  whole.writeUInt32LE((whole.readUInt32LE(crc) ^ 0xdeadbeef) >>> 0, crc);
  return whole;
}

const BOMB_BLOCK_MEGABYTES = 8;
let spaces: Buffer | undefined;

/**
 * Compresses one block of spaces and repeats it. A full flush makes the block independent of earlier ones, so gigabytes
 * cost no time.
 */
function createGzipBomb(megabytes: number): Uint8Array {
  spaces ??= deflateRawSync(Buffer.alloc(BOMB_BLOCK_MEGABYTES << 20, " "), {
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const block = spaces;
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
  const blocks = Array.from({ length: Math.ceil(megabytes / BOMB_BLOCK_MEGABYTES) }, () => block);
  return Buffer.concat([header, ...blocks, deflateRawSync(Buffer.from("{}")), Buffer.alloc(8)]);
}
