export const opcodes = { continuation: 0, text: 1, binary: 2 } as const;

/** Encodes a frame. A server does not mask its frames, so the same bytes can go to many sockets. */
export function encodeFrame(
  payload: string | Uint8Array,
  opcode: number = opcodes.text,
  isFinal = true,
): Buffer {
  const length = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length;
  const headerBytes = headerLength(length);
  const bytes = Buffer.allocUnsafe(headerBytes + length);
  bytes[0] = (isFinal ? 0x80 : 0) | opcode;
  if (headerBytes === 2) bytes[1] = length;
  else if (headerBytes === 4) {
    bytes[1] = 126;
    bytes.writeUInt16BE(length, 2);
  } else {
    bytes[1] = 127;
    bytes.writeBigUInt64BE(BigInt(length), 2);
  }
  if (typeof payload === "string") bytes.write(payload, headerBytes);
  else bytes.set(payload, headerBytes);
  return bytes;
}

function headerLength(length: number): number {
  if (length < 126) return 2;
  return length < 65_536 ? 4 : 10;
}
