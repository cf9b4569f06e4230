import { isUtf8 } from "node:buffer";
import { MICROS_PER_MS, type Micros, parseInstant } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";

/** One message of the service, as far as the feed itself needs to understand it. */
export type Frame =
  | { readonly kind: "tick"; readonly source: "index" | "exchange"; readonly text: string }
  | { readonly kind: "connected" | "pong"; readonly timestamp: string | undefined }
  | { readonly kind: "ping"; readonly requestId: unknown }
  | { readonly kind: "subscribed"; readonly source: "index" | "exchange"; readonly fields: Fields }
  | { readonly kind: "error"; readonly code: string; readonly message: string }
  | { readonly kind: "unknown"; readonly event: string; readonly reason: string; readonly text: string };

export type Fields = Readonly<Record<string, unknown>>;

const LONGEST_WORD = 200;

/**
 * A quote inside a JSON string is always escaped, so that this pattern can only match a real property; the
 * order of properties and the blanks between them are the service's affair.
 */
const tickEvent = /"event"\s*:\s*"(INDEX|EXCHANGE)_TICKER"/;

/** Reads a frame. Never throws. Ticks, of which there are thousands, are recognised without being parsed. */
export function readFrame(data: Buffer, isBinary: boolean): Frame {
  if (isBinary && !isUtf8(data)) return unknown("(binary)", "not text", data.toString("latin1"));
  const text = data.toString("utf8");
  const tick = tickEvent.exec(text);
  // A second "event" may be the real one, around or beside it: those are parsed.
  if (tick && text.indexOf('"event"') === text.lastIndexOf('"event"') && text.endsWith("}"))
    return { kind: "tick", source: tick[1] === "INDEX" ? "index" : "exchange", text };
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return unknown("(none)", "not JSON", text);
  }
  if (typeof message !== "object" || message === null || Array.isArray(message))
    return unknown("(none)", "not an object", text);
  return readMessage(message as Fields, text);
}

function readMessage(fields: Fields, text: string): Frame {
  switch (fields.event) {
    case "INDEX_TICKER":
      return { kind: "tick", source: "index", text };
    case "EXCHANGE_TICKER":
      return { kind: "tick", source: "exchange", text };
    case "CONNECTED":
      return { kind: "connected", timestamp: word(fields.timestamp) };
    case "PONG":
      return { kind: "pong", timestamp: word(fields.timestamp) };
    case "PING":
      return { kind: "ping", requestId: fields.requestId };
    case "SUBSCRIBED_INDEX_TICKER":
      return { kind: "subscribed", source: "index", fields };
    case "SUBSCRIBED_EXCHANGE_TICKER":
      return { kind: "subscribed", source: "exchange", fields };
    case "ERROR":
      return { kind: "error", code: word(fields.code) ?? "(none)", message: word(fields.message) ?? "" };
    default:
      if (typeof fields.event !== "string") return unknown("(none)", "no event name", text);
      return unknown(fields.event, "not an event that this version knows", text);
  }
}

/** The service says codes as strings; a number means the same. */
function word(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  return String(value).slice(0, LONGEST_WORD);
}

function unknown(event: string, reason: string, text: string): Frame {
  return { kind: "unknown", event: event.slice(0, LONGEST_WORD), reason, text };
}

const fieldPatterns = {
  indexType: /"indexType"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  indexId: /"indexId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  exchangeId: /"exchangeId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
  marketId: /"marketId"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/,
};

/** The identity of a tick's series, taken from its text: type and id of an index, or exchange and market. */
export function tickIdentity(source: "index" | "exchange", text: string) {
  const [first, second] =
    source === "index" ? (["indexType", "indexId"] as const) : (["exchangeId", "marketId"] as const);
  return { source, first: field(first, text), second: field(second, text) };
}

function field(name: keyof typeof fieldPatterns, text: string): string | undefined {
  const source = fieldPatterns[name].exec(text)?.[1];
  if (source === undefined || source.charCodeAt(0) !== 34) return source;
  if (!source.includes("\\")) return source.slice(1, -1);
  try {
    return String(JSON.parse(source));
  } catch {
    return undefined;
  }
}

/** Moments by the service's clock, learned from CONNECTED and PONG, so that a wrong local clock dates no gap wrongly. */
export class ServiceTime {
  readonly #clock: Clock;
  #heard: { readonly at: Micros; readonly boottime: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hear(timestamp: string | undefined): void {
    const at = timestamp === undefined ? undefined : parseInstant(timestamp);
    if (at !== undefined) this.#heard = { at, boottime: this.#clock.boottime() };
  }

  now(): Micros {
    if (!this.#heard) return Math.round(this.#clock.now() * MICROS_PER_MS);
    const { at, boottime } = this.#heard;
    return at + Math.round((this.#clock.boottime() - boottime) * MICROS_PER_MS);
  }
}
