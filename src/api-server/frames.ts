/** The first byte of a frame that is a whole message of text. */
const WHOLE_TEXT = 0x81;

/**
 * Websocket frames in one buffer. A server does not mask its frames, so the same bytes go to many sockets. The buffer has
 * exactly their size: one that waits for a slow client must not keep a larger one in memory.
 */
export function encodeFrames(payloads: readonly (string | Uint8Array)[]): Buffer {
  const lengths = payloads.map((payload) => Buffer.byteLength(payload));
  const total = lengths.reduce((sum, length) => sum + headerLength(length) + length, 0);
  const bytes = Buffer.allocUnsafeSlow(total);
  let at = 0;
  for (const [index, payload] of payloads.entries()) {
    const length = lengths[index] as number;
    const headerBytes = headerLength(length);
    bytes[at] = WHOLE_TEXT;
    bytes[at + 1] = headerBytes === 2 ? length : headerBytes === 4 ? 126 : 127;
    if (headerBytes === 4) bytes.writeUInt16BE(length, at + 2);
    if (headerBytes === 10) bytes.writeBigUInt64BE(BigInt(length), at + 2);
    at += headerBytes;
    if (typeof payload === "string") bytes.write(payload, at);
    else bytes.set(payload, at);
    at += length;
  }
  return bytes;
}

function headerLength(length: number): number {
  if (length < 126) return 2;
  return length < 65_536 ? 4 : 10;
}

export const encodeFrame = (payload: string | Uint8Array) => encodeFrames([payload]);
