import { isUtf8 } from "node:buffer";
import { subscriptionKey } from "./subscription-states.ts";

/** One message of the service, parsed as far as the feed needs it. */
export type Frame =
  | { readonly kind: "tick"; readonly source: "index" | "exchange"; readonly text: string }
  | { readonly kind: "connected" | "pong"; readonly timestamp: string | undefined }
  | { readonly kind: "ping"; readonly requestId: unknown }
  | { readonly kind: "subscribed"; readonly source: "index" | "exchange"; readonly fields: FrameFields }
  | { readonly kind: "error"; readonly code: string; readonly message: string }
  | UnknownFrame;

export interface UnknownFrame {
  readonly kind: "unknown";
  readonly event: string;
  readonly reason: string;
  readonly text: string;
}

export type FrameFields = Readonly<Record<string, unknown>>;

const MAX_TEXT_CHARS = 200;

/** Quotes inside a JSON string are escaped, so this pattern matches only a real property, in any position. */
const tickEventPattern = /"event"\s*:\s*"(INDEX|EXCHANGE)_TICKER"/;

/** Never throws. Recognises ticks by pattern: parsing thousands of them here would cost too much. */
export function readFrame(data: Buffer, isBinary: boolean): Frame {
  if (isBinary && !isUtf8(data)) return unknownFrame("(binary)", "not text", data.toString("latin1"));
  const text = data.toString("utf8");
  const tick = tickEventPattern.exec(text);
  // With a second "event" the pattern may have matched a nested one: parse the message instead.
  if (tick && text.indexOf('"event"') === text.lastIndexOf('"event"') && text.endsWith("}"))
    return { kind: "tick", source: tick[1] === "INDEX" ? "index" : "exchange", text };
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return unknownFrame("(none)", "not JSON", text);
  }
  if (typeof message !== "object" || message === null || Array.isArray(message))
    return unknownFrame("(none)", "not an object", text);
  return readMessage(message as FrameFields, text);
}

function readMessage(fields: FrameFields, text: string): Frame {
  switch (fields.event) {
    case "INDEX_TICKER":
      return { kind: "tick", source: "index", text };
    case "EXCHANGE_TICKER":
      return { kind: "tick", source: "exchange", text };
    case "CONNECTED":
      return { kind: "connected", timestamp: readText(fields.timestamp) };
    case "PONG":
      return { kind: "pong", timestamp: readText(fields.timestamp) };
    case "PING":
      return { kind: "ping", requestId: fields.requestId };
    case "SUBSCRIBED_INDEX_TICKER":
      return { kind: "subscribed", source: "index", fields };
    case "SUBSCRIBED_EXCHANGE_TICKER":
      return { kind: "subscribed", source: "exchange", fields };
    case "ERROR":
      return {
        kind: "error",
        code: readText(fields.code) ?? "(none)",
        message: readText(fields.message) ?? "",
      };
    default:
      if (typeof fields.event !== "string") return unknownFrame("(none)", "no event name", text);
      return unknownFrame(fields.event, "not an event that this version knows", text);
  }
}

/** The service sends codes as strings; a number means the same. */
function readText(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  return String(value).slice(0, MAX_TEXT_CHARS);
}

function unknownFrame(event: string, reason: string, text: string): Frame {
  return { kind: "unknown", event: event.slice(0, MAX_TEXT_CHARS), reason, text };
}

const fieldPatterns = {
  indexType: /"indexType"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  indexId: /"indexId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  exchangeId: /"exchangeId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  marketId: /"marketId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
};

/** The keys of all subscriptions that may have caused a tick. */
export function subscriptionKeysOfTick(source: "index" | "exchange", text: string): string[] {
  if (source === "index")
    return [
      subscriptionKey({ source, indexId: extractField("indexId", text) }),
      subscriptionKey({ source, indexType: extractField("indexType", text) }),
    ];
  const [exchangeId, marketId] = [extractField("exchangeId", text), extractField("marketId", text)];
  return [
    subscriptionKey({ source, exchangeId, marketId }),
    subscriptionKey({ source, exchangeId }),
    subscriptionKey({ source, marketId }),
  ];
}

function extractField(name: keyof typeof fieldPatterns, text: string): string | undefined {
  const json = fieldPatterns[name].exec(text)?.[1];
  if (json === undefined || !json.startsWith('"')) return json;
  if (!json.includes("\\")) return json.slice(1, -1);
  try {
    return String(JSON.parse(json));
  } catch {
    return undefined;
  }
}
