import type { DailyBar, StreamRecords } from "../../model/records.ts";
import { type Stream, streamDefinition, streams } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../model/time.ts";
import { createColumnReader, type DecodeContext } from "./column-reader.ts";
import { readExchangeLists } from "./exchange-lists.ts";
import type { Properties, RecordReader } from "./record-reader.ts";

export type ReadRecord<R> = (reader: RecordReader, fields: Properties, context: DecodeContext) => R;

/** What the stream table cannot describe: lists inside a record, and checks across its fields. */
const finishers: {
  readonly [S in Stream]?: (reader: RecordReader, fields: Properties, record: never) => object;
} = {
  exchanges: readExchangeLists,
  ohlcv: checkBar,
};

/** Reads the records of each stream as the stream table describes them. */
export const recordReaders = Object.fromEntries(
  streams.map((stream) => [stream, createRecordReader(stream)]),
) as unknown as { readonly [S in Stream]: ReadRecord<StreamRecords[S]> };

function createRecordReader(stream: Stream): ReadRecord<unknown> {
  const { columns, otherFields } = streamDefinition(stream);
  const { fields: names, read } = createColumnReader(columns, readBarStart);
  const known: ReadonlySet<string> = new Set([...names, ...otherFields]);
  const finish = finishers[stream];
  return (reader, fields, context) => {
    // Few streams store the record's own id, but a value that cannot be an id rejects the record.
    reader.id("id", fields.id);
    const record = read(reader, fields, context);
    if (finish) Object.assign(record, finish(reader, fields, record as never));
    record.quality = reader.quality();
    record.extra = reader.extra(known);
    return record;
  };
}

function checkBar(reader: RecordReader, _fields: Properties, { open, high, low, close }: DailyBar): object {
  if (high && low && high.real < low.real) reader.noteProblem("high", "is below low");
  else {
    for (const [name, figure] of [["open", open] as const, ["close", close] as const]) {
      if (figure && high && figure.real > high.real) reader.noteProblem(name, "is above high");
      if (figure && low && figure.real < low.real) reader.noteProblem(name, "is below low");
    }
  }
  return {};
}

/** The day that a bar covers, from the first of its timestamps that can be read. */
function readBarStart(reader: RecordReader, fields: Properties): Micros {
  const end = reader.optionalTimestamp("endTimestamp", fields.endTimestamp);
  for (const name of ["startTimestamp", "timestamp"]) {
    const ts = reader.optionalTimestamp(name, fields[name]);
    if (ts === null) continue;
    const start = startOfDay(ts);
    if (start !== ts) reader.noteProblem(name, "is not the start of a UTC day", String(fields[name]));
    // An earlier end belongs to today's unfinished bar; a later one is an error of the service.
    if (end !== null && endOfDay(end) > start + MICROS_PER_DAY)
      reader.noteProblem("endTimestamp", "is past the day", String(fields.endTimestamp));
    return reader.checkPlausible(name, start);
  }
  if (end === null) {
    const named = ["startTimestamp", "timestamp", "endTimestamp"].find((name) => fields[name] != null);
    reader.rejection ??= named ? `${named} is not a UTC moment` : "startTimestamp is missing";
    return 0;
  }
  const midnight = endOfDay(end);
  if (midnight % MICROS_PER_DAY !== 0)
    reader.noteProblem("endTimestamp", "is not the end of a UTC day", String(fields.endTimestamp));
  return reader.checkPlausible("endTimestamp", startOfDay(midnight - 1));
}

/** The service sends a bar's end as the next midnight, or as the last second or fraction before it. */
function endOfDay(end: Micros): Micros {
  const next = startOfDay(end) + MICROS_PER_DAY;
  return next - end <= MICROS_PER_SECOND ? next : end;
}
