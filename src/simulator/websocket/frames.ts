import type { TriggeredFault } from "../faults/script.ts";

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

const TRADE = {
  event: "TRADE",
  id: "5f1c1a2e-0000-4000-8000-000000000001",
  tradeId: "77",
  price: "1.5",
  amount: "2",
};

/** Renders the unexpected message of the fault `message` as frames. */
export function renderFaultyMessage({ line, chance }: TriggeredFault): Buffer {
  const bytes = line.numberOf("bytes");
  switch (line.textOf("is")) {
    case "garbage":
      return encodeFrame(
        Buffer.from(Array.from({ length: 64 }, (_, at) => Math.floor(chance("byte", at) * 256))),
        opcodes.binary,
      );
    case "utf8":
      return encodeFrame(
        Buffer.concat([Buffer.from('{"event":"TRADE","note":"'), Buffer.of(0xc3, 0x28), Buffer.from('"}')]),
      );
    case "oversized":
      return encodeFrame(JSON.stringify({ ...TRADE, note: "x".repeat(bytes) }));
    case "fragments": {
      const piece = Buffer.alloc(16_384, "x");
      const pieces = Array.from({ length: Math.ceil(bytes / piece.length) }, () =>
        encodeFrame(piece, opcodes.continuation, false),
      );
      return Buffer.concat([encodeFrame('{"event":"TRADE","note":"', opcodes.text, false), ...pieces]);
    }
    case "deflated": {
      // RSV1 marks the message as compressed, which was not negotiated.
      const message = encodeFrame(JSON.stringify(TRADE));
      message[0] = (message[0] ?? 0) | 0x40;
      return message;
    }
    case "trade":
      return encodeFrame(JSON.stringify(TRADE));
    default:
      return encodeFrame(PLAIN_MESSAGES[line.textOf("is")] ?? "");
  }
}

const PLAIN_MESSAGES: Record<string, string> = {
  "no-event": '{"price":"1"}',
  array: '[{"event":"INDEX_TICKER"}]',
  null: "null",
  "not-json": '{"event":',
};

/** The properties of the ERROR that the fault line describes; the code may be a number or missing. */
export function faultyErrorProperties({ line }: TriggeredFault): Record<string, unknown> {
  const code = line.textOf("code");
  const codes: Record<string, object> = { string: { code }, number: { code: Number(code) }, none: {} };
  return { ...codes[line.textOf("as")], message: "simulated failure" };
}
