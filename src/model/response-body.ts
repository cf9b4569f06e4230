import { gunzipSync } from "node:zlib";
import { errorCode, Failure } from "./failure.ts";

/** A response body as received. The ingest thread decompresses and decodes it. */
export interface ResponseBody {
  /** Owns its buffer, so that it can be transferred to another thread. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How much older than the request the response is: more than 0 if it came from a cache on the way. */
  readonly ageMs: number;
  /**
   * When the service made the page, by its own clock (ms). The page proves nothing about later times: a page from a
   * cache would otherwise prove that the time since then is empty.
   */
  readonly asOf: number | undefined;
  /** When the request was sent, on the boot clock. If two responses differ, the one requested later wins. */
  readonly requestedAt: number;
}

/** Reads what a page has, or throws what is wrong with it. */
export type ReadBody<T> = (body: ResponseBody) => Promise<T>;

/** The HTTP client stops reading a body at this size; it is also the limit once decompressed. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * The client retries an unreadable page like a broken connection; it never counts as the end of a walk.
 * The failure has no `cause` on purpose: the errors of JSON.parse quote the body.
 */
export function malformedBodyFailure(why: string): Failure {
  return new Failure(`the service's response cannot be read (${why})`, {
    code: "malformed_body",
    remedy:
      "retried automatically; if it persists, look for a proxy or portal that answers instead of the service",
  });
}

/** The service answered in JSON, but not with a list: it is this request that it cannot answer. */
export function noListFailure(why: string): Failure {
  return new Failure(`the service's response has no list (${why})`, {
    code: "no_list",
    remedy: "retried automatically; if it persists, contact the service's operator",
  });
}

/** The service sent null instead of a list: perhaps its way to say "empty". */
export function nullListFailure(): Failure {
  return new Failure("the service sent null, or nothing, instead of a list", {
    code: "null_list",
    remedy: "it counts as empty once it repeats and the endpoint has sent records for another request",
  });
}

const MIN_CHUNK_BYTES = 16 * 1024;
const MAX_CHUNK_BYTES = 1024 * 1024;

/** JSON rarely shrinks more. */
const MAX_USUAL_RATIO = 8;

/**
 * The decompressed length that the gzip trailer states, so that one chunk suffices. A stream of several members states only
 * the last one's. Clamped: a false length costs at most one allocation. Throws if there is no trailer.
 */
function gzipLengthHint(gzipped: Uint8Array): number {
  const { buffer, byteOffset, byteLength } = gzipped;
  const stated = new DataView(buffer, byteOffset).getUint32(byteLength - 4, true) + 1;
  const hint = stated > byteLength ? stated : byteLength * MAX_USUAL_RATIO;
  return Math.min(Math.max(hint, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES);
}

/**
 * Decompresses a body and strips its byte order mark. Detects gzip by its magic bytes: the header may be wrong.
 * Throws `malformed_body`; never returns a part of a page.
 */
export function decodeBody({ bytes }: Pick<ResponseBody, "bytes">, maxBytes = MAX_BODY_BYTES): Uint8Array {
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  let plain: Uint8Array = bytes;
  if (isGzip) {
    try {
      plain = gunzipSync(bytes, { maxOutputLength: maxBytes, chunkSize: gzipLengthHint(bytes) });
    } catch (error) {
      const isTooLarge = errorCode(error) === "ERR_BUFFER_TOO_LARGE";
      throw malformedBodyFailure(
        isTooLarge ? "larger than the limit once decompressed" : "broken or truncated gzip",
      );
    }
  }
  if (plain.byteLength > maxBytes) throw malformedBodyFailure("larger than the limit");
  return plain[0] === 0xef && plain[1] === 0xbb && plain[2] === 0xbf ? plain.subarray(3) : plain;
}
