import { brotliCompressSync, constants, deflateRawSync, gunzipSync, gzipSync } from "node:zlib";
import type { PlainAnswer } from "./fault-answer.ts";

/** The answer with a body that does not keep what its Content-Encoding promises. Content-Length stays honest. */
export function badlyEncoded(how: string, megabytes: number, wire: PlainAnswer): PlainAnswer {
  const zipped = wire.headers["content-encoding"] === "gzip";
  const { status, headers, body } = encoded(how, megabytes, {
    ...wire,
    body: zipped ? gunzipSync(wire.body) : wire.body,
  });
  return { status, headers: { ...headers, "content-length": String(body.length) }, body };
}

function encoded(how: string, megabytes: number, answer: PlainAnswer): PlainAnswer {
  const as = (encoding: string, body: Uint8Array): PlainAnswer => ({
    ...answer,
    headers: { ...answer.headers, "content-encoding": encoding },
    body,
  });
  if (how === "plain") return as("gzip", answer.body);
  if (how === "br")
    return as("br", brotliCompressSync(answer.body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }));
  if (how === "bomb") return as("gzip", gzipBomb(megabytes));
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
function gzipBomb(megabytes: number): Uint8Array {
  const blockMegabytes = 8;
  const block = deflateRawSync(Buffer.alloc(blockMegabytes << 20, " "), {
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
  const blocks = Array.from({ length: Math.ceil(megabytes / blockMegabytes) }, () => block);
  return Buffer.concat([header, ...blocks, deflateRawSync(Buffer.from("{}")), Buffer.alloc(8)]);
}
