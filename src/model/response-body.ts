import { gunzipSync } from "node:zlib";
import { Failure } from "./failure.ts";

/** An answer as it came over the wire. The ingest thread unpacks and reads it. */
export interface Body {
  /** Owns its buffer, so that it may be transferred to another thread. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How much older than the request the answer is: more than 0 when a cache between us and the service kept it. */
  readonly ageMs: number;
  /**
   * The moment, by the service's clock, at which the page was true. It proves nothing about what came after: a kept
   * page that was asked for up to now would otherwise turn the rows since then into proven emptiness.
   */
  readonly asOf: number | undefined;
  /** When the request left, on the boot clock: of two answers the later asked is the truer. */
  readonly askedAt: number;
}

export const LARGEST_DECODED_BODY = 64 * 1024 * 1024;
/** Compressed bytes beyond this are not even taken off the wire. */
export const LARGEST_BODY = LARGEST_DECODED_BODY;

/**
 * A page that cannot be read is trouble on the way, like a broken connection: asked again, never taken for an end.
 * It takes no cause on purpose: the errors of JSON.parse quote the body.
 */
export function malformedBody(why: string): Failure {
  return new Failure(`the service's answer cannot be read (${why})`, {
    family: "retry",
    code: "malformed_body",
    remedy:
      "it is asked again by itself; if it lasts, look for a proxy or portal that answers in the service's place",
  });
}

const SMALLEST_CHUNK = 16 * 1024;
const LARGEST_CHUNK = 1024 * 1024;

/**
 * What the last bytes of a gzip body say about its plain length: unpacked in one piece it need not be joined from
 * dozens. Only a hint for the first allocation, so that a lie costs at most that.
 */
function promisedLength(zipped: Uint8Array): number {
  const { buffer, byteOffset, byteLength } = zipped;
  const promised = byteLength < 4 ? 0 : new DataView(buffer, byteOffset).getUint32(byteLength - 4, true) + 1;
  return Math.min(Math.max(promised, SMALLEST_CHUNK), LARGEST_CHUNK);
}

/**
 * The plain bytes of an answer, without a byte order mark. What the service says of their encoding may be mistaken: the bytes
 * themselves tell. Throws `malformed_body`; never yields a part of a page.
 */
export function decodeBody({ bytes }: Pick<Body, "bytes">, cap = LARGEST_DECODED_BODY): Uint8Array {
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  let plain: Uint8Array = bytes;
  if (zipped) {
    try {
      plain = gunzipSync(bytes, { maxOutputLength: cap, chunkSize: promisedLength(bytes) });
    } catch (error) {
      const tooLarge = (error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE";
      throw malformedBody(tooLarge ? "larger than the cap once unpacked" : "broken or truncated gzip");
    }
  }
  if (plain.byteLength > cap) throw malformedBody("larger than the cap");
  return plain[0] === 0xef && plain[1] === 0xbb && plain[2] === 0xbf ? plain.subarray(3) : plain;
}
