import { brotliCompressSync, constants, deflateRawSync, gunzipSync, gzipSync } from "node:zlib";
import { errorBody } from "../rest/errors.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import type { TriggeredFault } from "./script.ts";

export function plainErrorResponse(status: number, message: string, now: number): PlainResponse {
  return plainJsonResponse(status, errorBody(status, message, new Date(now).toISOString()), now);
}

export function plainJsonResponse(status: number, json: string, now: number): PlainResponse {
  const headers = { "content-type": "application/json", date: formatHttpDate(now) };
  return { status, headers, body: Buffer.from(json) };
}

/** The answer as a fault of status, headers or body leaves it; undefined for a word that is none. */
export function applyBodyFault(
  { line }: TriggeredFault,
  answer: PlainResponse,
  now: number,
): PlainResponse | undefined {
  const plain = (body: string | Uint8Array, type = "application/json"): PlainResponse => ({
    status: 200,
    headers: { ...answer.headers, "content-type": type },
    body: Buffer.from(body),
  });
  switch (line.definition.name) {
    case "status":
    case "rate-limit": {
      const status = line.definition.name === "status" ? line.numberOf("code") : 429;
      const said = plainErrorResponse(status, "the simulator was told to fail", now);
      const wait = formatRetryAfter(line.textOf("retry-after"), line.numberOf("wait"), now);
      return wait === undefined ? said : { ...said, headers: { ...said.headers, "retry-after": wait } };
    }
    case "redirect":
      return {
        status: line.numberOf("code"),
        headers: { location: line.textOf("location"), date: formatHttpDate(now) },
        body: Buffer.of(),
      };
    case "html":
      return plain(
        "<!doctype html><title>Sign in</title><p>Welcome to the airport's free network.",
        "text/html",
      );
    case "empty-body":
      return plain("");
    case "no-content":
      return { status: 204, headers: answer.headers, body: Buffer.of() };
    case "bom":
      return plain(Buffer.concat([Buffer.from("\uFEFF"), answer.body]));
    case "content-type":
      return { ...answer, headers: { ...answer.headers, "content-type": line.textOf("type") } };
    case "envelope":
      return plain(ENVELOPES[line.textOf("shape")] ?? "{}");
    default:
      return undefined;
  }
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

export function formatRetryAfter(form: string, wait: number, now: number): string | undefined {
  const then = new Date(now + wait);
  const [weekday = "", day = "", month = "", year = "", time = ""] = then
    .toUTCString()
    .replace(",", "")
    .split(" ");
  switch (form) {
    case "seconds":
      return String(Math.ceil(wait / 1000));
    case "imf":
      return then.toUTCString();
    case "rfc850":
      return `${WEEKDAYS[then.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
    case "asctime":
      return `${weekday} ${month} ${String(then.getUTCDate()).padStart(2)} ${time} ${year}`;
    case "past":
      return formatHttpDate(now - wait);
    case "far":
      return formatHttpDate(now + 10 * 365 * 86_400_000);
    case "garbage":
      return "when the moon is full";
    case "negative":
      return "-7";
    case "huge":
      return "1000000000";
    case "exponent":
      return "1e9";
    default:
      return undefined;
  }
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** The answer with a body that does not keep what its Content-Encoding promises. Content-Length stays honest. */
export function applyEncodingFault(how: string, megabytes: number, wire: PlainResponse): PlainResponse {
  const zipped = wire.headers["content-encoding"] === "gzip";
  const { status, headers, body } = corruptEncoding(how, megabytes, {
    ...wire,
    body: zipped ? gunzipSync(wire.body) : wire.body,
  });
  return { status, headers: { ...headers, "content-length": String(body.length) }, body };
}

function corruptEncoding(how: string, megabytes: number, answer: PlainResponse): PlainResponse {
  const as = (encoding: string, body: Uint8Array): PlainResponse => ({
    ...answer,
    headers: { ...answer.headers, "content-encoding": encoding },
    body,
  });
  if (how === "plain") return as("gzip", answer.body);
  if (how === "br")
    return as("br", brotliCompressSync(answer.body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }));
  if (how === "bomb") return as("gzip", createGzipBomb(megabytes));
  const whole = gzipSync(answer.body);
  if (how === "cut") return as("gzip", whole.subarray(0, Math.floor(whole.length * 0.6)));
  // A gzip trailer is CRC-32 and length, four bytes each.
  const crc = whole.length - 8;
  whole.writeUInt32LE((whole.readUInt32LE(crc) ^ 0xdeadbeef) >>> 0, crc);
  return as("gzip", whole);
}

/**
 * One block of spaces, compressed once and repeated: a full flush ends a block so that it leans on nothing before it,
 * and gigabytes cost no time to make.
 */
function createGzipBomb(megabytes: number): Uint8Array {
  const blockMegabytes = 8;
  const block = deflateRawSync(Buffer.alloc(blockMegabytes << 20, " "), {
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
  const blocks = Array.from({ length: Math.ceil(megabytes / blockMegabytes) }, () => block);
  return Buffer.concat([header, ...blocks, deflateRawSync(Buffer.from("{}")), Buffer.alloc(8)]);
}
