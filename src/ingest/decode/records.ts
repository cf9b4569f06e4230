import { type Column, type FieldReading, inStoredOrder } from "../../model/column.ts";
import {
  type DailyBar,
  type ExchangeMarket,
  type ExchangeSymbol,
  propertyOf,
  type StreamRecords,
} from "../../model/records.ts";
import { exchangeMarketColumns, exchangeSymbolColumns } from "../../model/stream-columns.ts";
import { type Stream, streamDefinition, streams } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../model/time.ts";
import { sliceElements, toCanonicalJson } from "./json-source.ts";
import { isProperties, type Properties, type RecordReader } from "./record-reader.ts";

/** Values that the request has and the record lacks. */
export interface DecodeContext {
  readonly derivativeType?: string | undefined;
  /** Records with a later timestamp are rejected; absent: none. */
  readonly latest?: Micros;
}

type ColumnValues = Record<string, unknown>;

/** Reads the columns that records have, each into a property of a new object. */
type ReadColumns = (reader: RecordReader, fields: Properties, context: DecodeContext) => ColumnValues;

type ReadTime = (reader: RecordReader, fields: Properties) => Micros;
type ReadNested = (reader: RecordReader, fields: Properties, record: ColumnValues) => void;

interface ColumnReader {
  /** The top-level properties that the columns are read from. */
  readonly fields: readonly string[];
  readonly read: ReadColumns;
}

/**
 * Compiles a function that reads the columns of a stream: every live tick is read with it, and fixed property
 * names are several times faster than names from a list. All names in the source are from the stream table.
 *
 * `readTime`: for a stream whose timestamp takes more than one field to read.
 */
function createColumnReader(columns: readonly Column[], readTime?: ReadTime): ColumnReader {
  const readColumns = inStoredOrder(columns).filter(({ reading }) => reading !== null);
  const nested = Map.groupBy(readColumns.filter(isNested), ({ field }) => outerOf(field));
  const flat = readColumns.filter(
    (column) => !isNested(column) && column.field !== "" && !column.isFromRequest,
  );
  const values = readColumns.map((column, i) => `${propertyOf(column)}: ${buildValueSource(column, i)}`);
  const source = `const record = { ${values.join(", ")}, quality: null, extra: null };
    for (const read of nested) read(reader, fields, record);
    return record;`;
  const compiled = new Function(
    "known",
    "nested",
    "readTime",
    `return (reader, fields, context) => {\n${source}\n}`,
  );
  return {
    fields: [...flat.map(({ field }) => field), ...nested.keys()],
    read: compiled(
      readColumns.map(({ known }) => known && new Set(known)),
      [...nested].map(([outer, inner]) => createNestedReader(outer, inner)),
      readTime,
    ) as ReadColumns,
  };
}

function buildValueSource(column: Column, i: number): string {
  const { reading, field, known, isFromRequest } = column;
  if (isNested(column)) return "null";
  if (field === "") return "readTime(reader, fields)";
  const name = JSON.stringify(field);
  const value = isFromRequest ? `context[${name}] ?? fields[${name}]` : `fields[${name}]`;
  const read = `reader.${reading}(${name}, ${value})`;
  return known === null ? read : `reader.countIfUnknown(${name}, ${read}, known[${i}])`;
}

const isNested = ({ field }: Column) => field.includes(".");
const outerOf = (field: string) => field.slice(0, field.indexOf("."));

/** A nested object with a property that no column reads is also stored whole in `extra`. */
function createNestedReader(outer: string, columns: readonly Column[]): ReadNested {
  const inner = columns.map((column) => ({
    property: propertyOf(column),
    name: column.field.slice(outer.length + 1),
    reading: column.reading as FieldReading,
  }));
  const known: ReadonlySet<string> = new Set(inner.map(({ name }) => name));
  return (reader, fields, record) => {
    const nested = reader.nested(outer, fields[outer]);
    if (!nested) return;
    for (const { property, name, reading } of inner)
      record[property] = nested.reader[reading](name, nested.properties[name]);
    reader.addQuality(nested.reader.quality);
    if (nested.reader.extra(known) !== null) reader.addExtra(outer, toCanonicalJson(reader.sourceOf(outer)));
  };
}

type ReadElement<E> = (reader: RecordReader, fields: Properties) => E;

const readMarket = createElementReader<ExchangeMarket>(exchangeMarketColumns);
const readSymbol = createElementReader<ExchangeSymbol>(exchangeSymbolColumns);

function readExchangeLists(reader: RecordReader, fields: Properties) {
  return {
    markets: readList(reader, "markets", fields.markets, readMarket),
    symbols: readList(reader, "symbols", fields.symbols, readSymbol),
  };
}

function createElementReader<E>(columns: readonly Column[]): ReadElement<E> {
  const { fields: names, read } = createColumnReader(columns);
  const known: ReadonlySet<string> = new Set(names);
  return (reader, fields) => {
    const { quality: _quality, ...element } = read(reader, fields, {});
    return { ...element, extra: reader.extra(known) } as E;
  };
}

/** Stores elements that cannot be read in the record's `extra`, under the list's name. */
function readList<E>(reader: RecordReader, name: string, value: unknown, read: ReadElement<E>): E[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    reader.noteProblem(name, "is not a list");
    reader.addExtra(name, toCanonicalJson(reader.sourceOf(name)));
    return [];
  }
  let slices: string[] | undefined;
  const sliceOf = (index: number) => {
    slices ??= sliceElements(reader.sourceOf(name));
    return slices[index] ?? "";
  };
  const elements = reader.elements(name, sliceOf);
  const list: E[] = [];
  const unreadable: string[] = [];
  for (const [index, item] of value.entries()) {
    if (isProperties(item)) {
      elements.begin(item, index);
      const element = read(elements, item);
      reader.addQuality(elements.quality);
      if (elements.rejection === null) {
        list.push(element);
        continue;
      }
    }
    unreadable.push(toCanonicalJson(sliceOf(index)));
  }
  if (unreadable.length > 0) {
    reader.noteProblem(name, `has ${unreadable.length} elements that cannot be read`);
    reader.addExtra(name, `[${unreadable.join(",")}]`);
  }
  return list;
}

export type ReadRecord<R> = (reader: RecordReader, fields: Properties, context: DecodeContext) => R;

/** What the stream table cannot describe: lists inside a record, and checks across its fields. */
const finishers: {
  readonly [S in Stream]?: (reader: RecordReader, fields: Properties, record: never) => object;
} = { exchanges: readExchangeLists, ohlcv: checkBar };

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
    record.quality = reader.quality;
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
