import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import { capped } from "./page.ts";
import { isProperties, type Properties, RecordReader, UnknownTally } from "./record-reader.ts";
import { type ReadRecord, recordReaders } from "./records.ts";

/** A message that the feed took for a tick, read. */
export type LiveEvent =
  | { kind: "index_tick"; tick: IndexTick }
  | { kind: "exchange_tick"; tick: ExchangeTick }
  | { kind: "rejected_tick"; stream: "index_ticks" | "exchange_ticks"; reject: Reject }
  | { kind: "unknown"; event: string; reason: string; sample: string };

const LONGEST_SAMPLE = 2_000;

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

/**
 * Reads many messages, one after the other. Unknown fields are counted over all of them: what is set up once for a batch
 * instead of for each message is a quarter of the reading.
 */
export class EventReader {
  readonly #index = new TickReader(recordReaders.index_ticks);
  readonly #exchange = new TickReader(recordReaders.exchange_ticks);

  /** The fields that this version does not know, of all ticks so far. */
  unknownFields(): Record<"index_ticks" | "exchange_ticks", UnknownField[]> {
    return { index_ticks: this.#index.tally.fields(), exchange_ticks: this.#exchange.tally.fields() };
  }

  /** One message, whatever it is; its unknown fields are counted, not told. Never throws. */
  read(text: string): LiveEvent {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return unknown("(none)", "not JSON", text);
    }
    if (!isProperties(message)) return unknown("(none)", "not an object", text);
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
    if (typeof event !== "string") return unknown("(none)", "no event name", text);
    return unknown(event, "not an event that this version knows", text);
  }
}

function unknown(event: string, reason: string, text: string): LiveEvent {
  return { kind: "unknown", event: event.slice(0, 200), reason, sample: text.slice(0, LONGEST_SAMPLE) };
}
