import type { Reject, UnknownField } from "../../model/records.ts";
import { readRecords } from "./page.ts";
import { isProperties, type Properties } from "./record-reader.ts";
import { type ReadRecord, recordReaders } from "./records.ts";

/** What a batch of websocket messages has of one stream. */
export interface LiveTicks<R> {
  readonly ticks: readonly R[];
  /** The messages of the ticks, in the same order. */
  readonly texts: readonly string[];
  readonly rejects: readonly Reject[];
  /** The fields of all ticks that this version does not know. */
  readonly fields: readonly UnknownField[];
}

export type LiveMessages = ReturnType<typeof decodeLiveMessages>;

const MAX_NAME_LENGTH = 200;
const MAX_SAMPLE_LENGTH = 2_000;

/** Collects the messages of one stream: they are read together, like the records of a page. */
function createTickReader<R>(read: ReadRecord<R>) {
  const [messages, texts]: [Properties[], string[]] = [[], []];
  return {
    add(message: Properties, text: string): void {
      messages.push(message);
      texts.push(text);
    },
    finish(): LiveTicks<R> {
      const positions: number[] = [];
      const textOf = (at: number) => texts[at] ?? "";
      const { records, rejects, unknownFields } = readRecords(read, messages, textOf, {}, positions);
      return { ticks: records, texts: positions.map(textOf), rejects, fields: unknownFields };
    },
  };
}

/** Never throws: what is no tick is an unknown event. */
export function decodeLiveMessages(messages: readonly string[]) {
  const index = createTickReader(recordReaders.index_ticks);
  const exchange = createTickReader(recordReaders.exchange_ticks);
  /** Messages that this version does not know, by their event. */
  const events: UnknownField[] = [];
  for (const text of messages) {
    const message = parseMessage(text);
    const { event } = message;
    if (event === "INDEX_TICKER") index.add(message, text);
    else if (event === "EXCHANGE_TICKER") exchange.add(message, text);
    else {
      const name = typeof event === "string" ? event.slice(0, MAX_NAME_LENGTH) : "(none)";
      events.push({ name, count: 1, sample: text.slice(0, MAX_SAMPLE_LENGTH) });
    }
  }
  return { index_ticks: index.finish(), exchange_ticks: exchange.finish(), events };
}

function parseMessage(text: string): Properties {
  try {
    const message: unknown = JSON.parse(text);
    return isProperties(message) ? message : {};
  } catch {
    return {};
  }
}
