import type { Reject, UnknownField } from "../../model/records.ts";
import { readRecords } from "./decode-page.ts";
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

/** Reads the ticks of one stream together, like the records of a page. */
function readTicks<R>(read: ReadRecord<R>, texts: readonly string[], messages: Properties[]): LiveTicks<R> {
  const positions: number[] = [];
  const textOf = (at: number) => texts[at] ?? "";
  const { records, rejects, unknownFields } = readRecords(read, messages, textOf, {}, positions);
  return { ticks: records, texts: positions.map(textOf), rejects, fields: unknownFields };
}

/** Never throws: what is no tick is an unknown event. */
export function decodeLiveMessages(messages: readonly string[]) {
  const index: [texts: string[], messages: Properties[]] = [[], []];
  const exchange: typeof index = [[], []];
  /** Messages that this version does not know, by their event. */
  const events: UnknownField[] = [];
  for (const text of messages) {
    const message = parseMessage(text);
    const { event } = message;
    const ticks = event === "INDEX_TICKER" ? index : event === "EXCHANGE_TICKER" ? exchange : undefined;
    if (ticks) {
      ticks[0].push(text);
      ticks[1].push(message);
    } else {
      const name = typeof event === "string" ? event.slice(0, MAX_NAME_LENGTH) : "(none)";
      events.push({ name, count: 1, sample: text.slice(0, MAX_SAMPLE_LENGTH) });
    }
  }
  return {
    index_ticks: readTicks(recordReaders.index_ticks, ...index),
    exchange_ticks: readTicks(recordReaders.exchange_ticks, ...exchange),
    events,
  };
}

function parseMessage(text: string): Properties {
  try {
    const message: unknown = JSON.parse(text);
    return isProperties(message) ? message : {};
  } catch {
    return {};
  }
}
