import { type Micros, parseInstant } from "../model/instant.ts";
import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../model/records.ts";
import { capped } from "./decode-page.ts";
import { isProperties, type Properties, RecordReader } from "./decode-reader.ts";
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
  const reader = new EventReader();
  const event = reader.read(text);
  if (event.kind !== "index_tick" && event.kind !== "exchange_tick") return event;
  const { index_ticks, exchange_ticks } = reader.unknownFields();
  return { ...event, unknownFields: [...index_ticks, ...exchange_ticks] };
}

/** What the ticks of one stream are read with. */
class TickReader<R> {
  readonly tally = new UnknownTally();
  readonly #read: ReadRecord<R>;
  readonly #reader: RecordReader;
  #text = "";

  constructor(read: ReadRecord<R>) {
    this.#read = read;
    this.#reader = new RecordReader(() => this.#text, this.tally);
  }

  read(message: Properties, text: string): { tick: R } | { reject: Reject } {
    this.#text = text;
    this.#reader.begin(message, 0);
    const tick = this.#read(this.#reader, message, {});
    const { rejection } = this.#reader;
    return rejection === null ? { tick } : { reject: { reason: rejection, raw: capped(text) } };
  }
}

const none: UnknownField[] = [];

/**
 * Reads many messages, one after the other. Unknown fields are counted over all of them: what is set up once for a batch
 * instead of for each message is a quarter of the reading.
 */
export class EventReader {
  readonly #index = new TickReader(readIndexTick);
  readonly #exchange = new TickReader(readExchangeTick);

  /** The fields that this version does not know, of all ticks so far. */
  unknownFields(): Record<"index_ticks" | "exchange_ticks", UnknownField[]> {
    return { index_ticks: this.#index.tally.fields(), exchange_ticks: this.#exchange.tally.fields() };
  }

  /** One message, whatever it is; its unknown fields are counted, not told. Never throws. */
  read(text: string): LiveEvent {
    return readEvent(text, this.#index, this.#exchange);
  }
}

function readEvent(
  text: string,
  index: TickReader<IndexTick>,
  exchange: TickReader<ExchangeTick>,
): LiveEvent {
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
      const read = index.read(message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "index_ticks", reject: read.reject };
      return { kind: "index_tick", tick: read.tick, unknownFields: none };
    }
    case "EXCHANGE_TICKER": {
      const read = exchange.read(message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "exchange_ticks", reject: read.reject };
      return { kind: "exchange_tick", tick: read.tick, unknownFields: none };
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
