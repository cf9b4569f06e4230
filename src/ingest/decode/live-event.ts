import type { Reject, UnknownField } from "../../model/records.ts";
import { truncateRaw } from "./page.ts";
import { isProperties, type Properties, RecordReader, UnknownTally } from "./record-reader.ts";
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

/** Decodes the ticks of one stream. One reader per batch: the setup takes a quarter of the time of one message. */
function createTickReader<R>(readRecord: ReadRecord<R>) {
  const [ticks, texts, rejects]: [R[], string[], Reject[]] = [[], [], []];
  const tally = new UnknownTally();
  let current = "";
  const reader = new RecordReader(() => current, tally);
  return {
    read(message: Properties, text: string): void {
      current = text;
      reader.begin(message, 0);
      const tick = readRecord(reader, message, {});
      const { rejection } = reader;
      if (rejection === null) {
        ticks.push(tick);
        texts.push(text);
      } else rejects.push({ reason: rejection, raw: truncateRaw(text) });
    },
    finish: (): LiveTicks<R> => ({ ticks, texts, rejects, fields: tally.fields() }),
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
    if (event === "INDEX_TICKER") index.read(message, text);
    else if (event === "EXCHANGE_TICKER") exchange.read(message, text);
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
