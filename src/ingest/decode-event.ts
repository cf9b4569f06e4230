import { type Micros, parseInstant } from "../model/instant.ts";
import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../model/records.ts";
import { readAll } from "./decode-page.ts";
import { isProperties, type Properties } from "./decode-reader.ts";
import { UnknownTally } from "./decode-tally.ts";
import { type ReadRecord, readExchangeTick, readIndexTick } from "./decode-ticks.ts";

/** A message of the websocket, read. */
export type LiveEvent =
  | { kind: "index_tick"; tick: IndexTick; unknownFields: UnknownField[] }
  | { kind: "exchange_tick"; tick: ExchangeTick; unknownFields: UnknownField[] }
  | { kind: "rejected_tick"; stream: "index_ticks" | "exchange_ticks"; reject: Reject }
  | { kind: "connected"; at: Micros | undefined }
  | { kind: "ping" | "pong"; requestId: unknown; at: Micros | undefined }
  | { kind: "subscribed"; event: string; requestId: unknown; at: Micros | undefined }
  | { kind: "error"; code: string | undefined; message: string | undefined; at: Micros | undefined }
  | { kind: "unknown"; event: string; reason: string; sample: string };

const LONGEST_SAMPLE = 2_000;

/** Reads one message, whatever it is. Never throws. */
export function decodeEvent(text: string): LiveEvent {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return unknown("(none)", "not JSON", text);
  }
  if (!isProperties(message)) return unknown("(none)", "not an object", text);
  const { event } = message;
  if (typeof event !== "string") return unknown("(none)", "no event name", text);
  switch (event) {
    case "INDEX_TICKER": {
      const read = readTick(readIndexTick, message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "index_ticks", reject: read.reject };
      return { kind: "index_tick", ...read };
    }
    case "EXCHANGE_TICKER": {
      const read = readTick(readExchangeTick, message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "exchange_ticks", reject: read.reject };
      return { kind: "exchange_tick", ...read };
    }
    case "CONNECTED":
      return { kind: "connected", at: moment(message) };
    case "PING":
      return { kind: "ping", requestId: message.requestId, at: moment(message) };
    case "PONG":
      return { kind: "pong", requestId: message.requestId, at: moment(message) };
    case "SUBSCRIBED_INDEX_TICKER":
    case "SUBSCRIBED_EXCHANGE_TICKER":
      return { kind: "subscribed", event, requestId: message.requestId, at: moment(message) };
    case "ERROR":
      return {
        kind: "error",
        code: message.code == null ? undefined : String(textOrNumber(message.code)),
        message: typeof message.message === "string" ? message.message : undefined,
        at: moment(message),
      };
    default:
      return unknown(event, "not an event that this version knows", text);
  }
}

function readTick<R>(
  read: ReadRecord<R>,
  message: Properties,
  text: string,
): { tick: R; unknownFields: UnknownField[] } | { reject: Reject } {
  const { records, rejects, unknownFields } = readAll(read, [message], () => text, {}, new UnknownTally());
  const [tick] = records;
  if (tick !== undefined) return { tick, unknownFields };
  return { reject: rejects[0] ?? { reason: "unreadable", raw: text } };
}

function moment(message: Properties): Micros | undefined {
  return typeof message.timestamp === "string" ? parseInstant(message.timestamp) : undefined;
}

/** Anything else has no text of its own: turning a hostile object into one may throw. */
function textOrNumber(value: unknown): unknown {
  return typeof value === "string" || typeof value === "number" ? value : typeof value;
}

function unknown(event: string, reason: string, text: string): LiveEvent {
  return { kind: "unknown", event: event.slice(0, 200), reason, sample: text.slice(0, LONGEST_SAMPLE) };
}
