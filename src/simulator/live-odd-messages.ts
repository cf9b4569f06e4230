import type { Strike } from "./fault-script.ts";
import { frame, opcodes } from "./live-frames.ts";

const trade = {
  event: "TRADE",
  id: "5f1c1a2e-0000-4000-8000-000000000001",
  tradeId: "77",
  price: "1.5",
  amount: "2",
};

/** A message that no client asked for, as frames. */
export function oddMessage(strike: Strike): Buffer {
  const { line, chance } = strike;
  const bytes = line.numberOf("bytes");
  switch (line.textOf("is")) {
    case "binary":
      return frame(Buffer.from(JSON.stringify(trade)), opcodes.binary);
    case "garbage":
      return frame(
        Buffer.from(Array.from({ length: 64 }, (_, at) => Math.floor(chance("byte", at) * 256))),
        opcodes.binary,
      );
    case "utf8":
      return frame(
        Buffer.concat([Buffer.from('{"event":"TRADE","note":"'), Buffer.of(0xc3, 0x28), Buffer.from('"}')]),
      );
    case "oversized":
      return frame(JSON.stringify({ ...trade, note: "x".repeat(bytes) }));
    case "fragments": {
      const piece = Buffer.alloc(16_384, "x");
      const pieces = Array.from({ length: Math.ceil(bytes / piece.length) }, () =>
        frame(piece, opcodes.continuation, false),
      );
      return Buffer.concat([frame('{"event":"TRADE","note":"', opcodes.text, false), ...pieces]);
    }
    case "deflated": {
      // RSV1 says that the message is compressed, which was never agreed on.
      const message = frame(JSON.stringify(trade));
      message[0] = (message[0] ?? 0) | 0x40;
      return message;
    }
    case "error":
      return frame(JSON.stringify({ event: "ERROR", ...errorProperties(strike) }));
    case "trade":
      return frame(JSON.stringify(trade));
    default:
      return frame(plainMessages[line.textOf("is")] ?? "");
  }
}

const plainMessages: Record<string, string> = {
  "no-event": '{"price":"1"}',
  array: '[{"event":"INDEX_TICKER"}]',
  null: "null",
  string: '"INDEX_TICKER"',
  number: "42",
  "not-json": '{"event":',
};

/** ERROR as the line wants it: the code may be a number or missing. */
export function errorProperties({ line }: Strike): Record<string, unknown> {
  const code = line.textOf("code");
  const codes: Record<string, object> = { string: { code }, number: { code: Number(code) }, none: {} };
  return { ...codes[line.textOf("as")], message: "the simulator was told to fail" };
}
