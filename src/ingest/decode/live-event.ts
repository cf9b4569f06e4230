import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import { truncateRaw } from "./page.ts";
import { isProperties, type Properties, RecordReader, UnknownTally } from "./record-reader.ts";
import { type ReadRecord, recordReaders } from "./records.ts";

/** A decoded websocket message. */
type LiveEvent =
  | { kind: "index_tick"; tick: IndexTick }
  | { kind: "exchange_tick"; tick: ExchangeTick }
  | { kind: "rejected_tick"; stream: "index_ticks" | "exchange_ticks"; reject: Reject }
  | { kind: "unknown"; event: string; reason: string; sample: string };

const MAX_SAMPLE_LENGTH = 2_000;

/** Decodes the ticks of one stream. */
class LiveTickReader<R> {
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
    return rejection === null ? { tick } : { reject: { reason: rejection, raw: truncateRaw(text) } };
  }
}

/**
 * Decodes a batch of messages. One instance per batch: the setup takes a quarter of the time of one message.
 */
export class LiveEventReader {
  readonly #index = new LiveTickReader(recordReaders.index_ticks);
  readonly #exchange = new LiveTickReader(recordReaders.exchange_ticks);

  /** The fields of all ticks so far that this version does not know. */
  unknownFields(): Record<"index_ticks" | "exchange_ticks", UnknownField[]> {
    return { index_ticks: this.#index.tally.fields(), exchange_ticks: this.#exchange.tally.fields() };
  }

  /** Decodes one message and counts its unknown fields. Never throws. */
  read(text: string): LiveEvent {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return unknownEvent("(none)", "not JSON", text);
    }
    if (!isProperties(message)) return unknownEvent("(none)", "not an object", text);
    const { event } = message;
    if (event === "INDEX_TICKER") {
      const read = this.#index.read(message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "index_ticks", reject: read.reject };
      return { kind: "index_tick", tick: read.tick };
    }
    if (event === "EXCHANGE_TICKER") {
      const read = this.#exchange.read(message, text);
      if ("reject" in read) return { kind: "rejected_tick", stream: "exchange_ticks", reject: read.reject };
      return { kind: "exchange_tick", tick: read.tick };
    }
    if (typeof event !== "string") return unknownEvent("(none)", "no event name", text);
    return unknownEvent(event, "not an event that this version knows", text);
  }
}

function unknownEvent(event: string, reason: string, text: string): LiveEvent {
  return { kind: "unknown", event: event.slice(0, 200), reason, sample: text.slice(0, MAX_SAMPLE_LENGTH) };
}
