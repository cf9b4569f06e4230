import { brotliCompressSync, constants, deflateRawSync, gunzipSync, gzipSync } from "node:zlib";
import { errorBody } from "../rest/errors.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import type { FaultLine } from "./parser.ts";
import type { TriggeredFault } from "./script.ts";

export function plainErrorResponse(status: number, message: string, nowMs: number): PlainResponse {
  return plainJsonResponse(status, errorBody(status, message, new Date(nowMs).toISOString()), nowMs);
}

export function plainJsonResponse(status: number, json: string, nowMs: number): PlainResponse {
  const headers = { "content-type": "application/json", date: formatHttpDate(nowMs) };
  return { status, headers, body: Buffer.from(json) };
}

/** Applies a fault of status, headers or body; undefined for any other fault. */
export function applyBodyFault(
  { line }: TriggeredFault,
  response: PlainResponse,
  nowMs: number,
): PlainResponse | undefined {
  return BODY_FAULTS[line.definition.name]?.(response, line, nowMs);
}

const CAPTIVE_PORTAL = "<!doctype html><title>Sign in</title><p>Welcome to the airport's free network.";

const BODY_FAULTS: Record<
  string,
  (response: PlainResponse, line: FaultLine, nowMs: number) => PlainResponse
> = {
  status: (_, line, nowMs) => failWith(line.numberOf("code"), line, nowMs),
  "rate-limit": (_, line, nowMs) => failWith(429, line, nowMs),
  redirect: (_, line, nowMs) => ({
    status: line.numberOf("code"),
    headers: { location: line.textOf("location"), date: formatHttpDate(nowMs) },
    body: Buffer.of(),
  }),
  html: (response) => withBody(response, CAPTIVE_PORTAL, "text/html"),
  "empty-body": (response) => withBody(response, ""),
  "no-content": ({ headers }) => ({ status: 204, headers, body: Buffer.of() }),
  bom: (response) => withBody(response, Buffer.concat([Buffer.from("\uFEFF"), response.body])),
  "content-type": (response, line) => ({
    ...response,
    headers: { ...response.headers, "content-type": line.textOf("type") },
  }),
  envelope: (response, line) => withBody(response, ENVELOPES[line.textOf("shape")] ?? "{}"),
};

function failWith(status: number, line: FaultLine, nowMs: number): PlainResponse {
  return withRetryAfter(line, plainErrorResponse(status, "simulated failure", nowMs), nowMs);
}

function withBody(
  { headers }: PlainResponse,
  body: string | Uint8Array,
  type = "application/json",
): PlainResponse {
  return { status: 200, headers: { ...headers, "content-type": type }, body: Buffer.from(body) };
}

/** Adds the header that the line asks for. */
export function withRetryAfter(line: FaultLine, response: PlainResponse, nowMs: number): PlainResponse {
  const retryAfter = formatRetryAfter(line.textOf("retry-after"), line.numberOf("wait"), nowMs);
  if (retryAfter === undefined) return response;
  return { ...response, headers: { ...response.headers, "retry-after": retryAfter } };
}

const ENVELOPES: Record<string, string> = {
  array: "[]",
  string: '"content"',
  number: "42",
  null: "null",
  "no-content": '{"nextId":null}',
  "content-object": '{"content":{}}',
  "content-null": '{"content":null}',
  "content-string": '{"content":"[]"}',
};

export function formatHttpDate(ms: number): string {
  return new Date(ms).toUTCString();
}

export function formatRetryAfter(form: string, waitMs: number, nowMs: number): string | undefined {
  return RETRY_AFTER_FORMS[form]?.(waitMs, nowMs);
}

/** The form `none` is no header. */
const RETRY_AFTER_FORMS: Record<string, (waitMs: number, nowMs: number) => string> = {
  seconds: (waitMs) => String(Math.ceil(waitMs / 1000)),
  imf: (waitMs, nowMs) => formatHttpDate(nowMs + waitMs),
  rfc850(waitMs, nowMs) {
    const weekday = new Date(nowMs + waitMs).toLocaleDateString("en-US", {
      weekday: "long",
      timeZone: "UTC",
    });
    return formatHttpDate(nowMs + waitMs).replace(/^\w+, (\d+) (\w+) \d\d(\d\d)/, `${weekday}, $1-$2-$3`);
  },
  asctime: (waitMs, nowMs) =>
    formatHttpDate(nowMs + waitMs)
      .replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT$/, "$1 $3 $2 $5 $4")
      .replace(/ 0(\d) /, "  $1 "),
  past: (waitMs, nowMs) => formatHttpDate(nowMs - waitMs),
  garbage: () => "when the moon is full",
  negative: () => "-7",
  exponent: () => "1e9",
};

/** Makes the body contradict its Content-Encoding. Content-Length stays correct. */
export function applyEncodingFault(how: string, megabytes: number, response: PlainResponse): PlainResponse {
  const isCompressed = response.headers["content-encoding"] === "gzip";
  const { status, headers, body } = corruptEncoding(how, megabytes, {
    ...response,
    body: isCompressed ? gunzipSync(response.body) : response.body,
  });
  return { status, headers: { ...headers, "content-length": String(body.length) }, body };
}

function corruptEncoding(how: string, megabytes: number, response: PlainResponse): PlainResponse {
  const withEncoding = (encoding: string, body: Uint8Array): PlainResponse => ({
    ...response,
    headers: { ...response.headers, "content-encoding": encoding },
    body,
  });
  if (how === "plain") return withEncoding("gzip", response.body);
  if (how === "br")
    return withEncoding(
      "br",
      brotliCompressSync(response.body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
    );
  if (how === "bomb") return withEncoding("gzip", createGzipBomb(megabytes));
  const whole = gzipSync(response.body);
  if (how === "cut") return withEncoding("gzip", whole.subarray(0, Math.floor(whole.length * 0.6)));
  // A gzip trailer is CRC-32 and length, four bytes each.
  const crc = whole.length - 8;
  whole.writeUInt32LE((whole.readUInt32LE(crc) ^ 0xdeadbeef) >>> 0, crc);
  return withEncoding("gzip", whole);
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
