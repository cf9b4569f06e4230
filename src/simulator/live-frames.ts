/** Websocket frames as bytes: rendered once, they are written to any number of sockets. A server's frames are not masked. */
export const opcodes = { continuation: 0, text: 1, binary: 2 } as const;

export function frame(payload: string | Uint8Array, opcode: number = opcodes.text, isFinal = true): Buffer {
  const length = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length;
  const head = headLength(length);
  const bytes = Buffer.allocUnsafe(head + length);
  bytes[0] = (isFinal ? 0x80 : 0) | opcode;
  if (head === 2) bytes[1] = length;
  else if (head === 4) {
    bytes[1] = 126;
    bytes.writeUInt16BE(length, 2);
  } else {
    bytes[1] = 127;
    bytes.writeBigUInt64BE(BigInt(length), 2);
  }
  if (typeof payload === "string") bytes.write(payload, head);
  else bytes.set(payload, head);
  return bytes;
}

function headLength(length: number): number {
  if (length < 126) return 2;
  return length < 65_536 ? 4 : 10;
}
