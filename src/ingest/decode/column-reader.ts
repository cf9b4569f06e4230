import { type Column, type FieldReading, inStoredOrder } from "../../model/column.ts";
import { propertyOf } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import { toCanonicalJson } from "./json-source.ts";
import type { Properties, RecordReader } from "./record-reader.ts";

/** What the request tells and the record does not. */
export interface DecodeContext {
  readonly derivativeType?: string | undefined;
}

type Target = Record<string, unknown>;

/** Reads the columns that records have, each into a property of a new object. */
export type ReadColumns = (reader: RecordReader, fields: Properties, context: DecodeContext) => Target;

type ReadTime = (reader: RecordReader, fields: Properties) => Micros;
type ReadNested = (reader: RecordReader, fields: Properties, record: Target) => void;

export interface ColumnReader {
  /** The top-level properties that the columns are read from. */
  readonly fields: readonly string[];
  readonly read: ReadColumns;
}

/**
 * A function that reads the columns of a stream, written as source text and compiled once: a property that is read by a
 * fixed name costs a fraction of one that is read by a name from a list, and the live feed reads every tick with it.
 * All names in the text come from the stream table.
 *
 * `readTime`: for a stream whose timestamp takes more than one field to read.
 */
export function columnReader(columns: readonly Column[], readTime?: ReadTime): ColumnReader {
  const read = inStoredOrder(columns).filter(({ reading }) => reading !== null);
  const nested = Map.groupBy(read.filter(isNested), ({ field }) => outerOf(field));
  const flat = read.filter((column) => !isNested(column) && column.field !== "" && !column.isFromRequest);
  const values = read.map((column, i) => `${propertyOf(column)}: ${valueSource(column, i)}`);
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
      read.map(({ known }) => known && new Set(known)),
      [...nested].map(([outer, inner]) => nestedReader(outer, inner)),
      readTime,
    ) as ReadColumns,
  };
}

function valueSource(column: Column, i: number): string {
  const { reading, field, known, isFromRequest } = column;
  if (isNested(column)) return "null";
  if (field === "") return "readTime(reader, fields)";
  const name = JSON.stringify(field);
  const value = isFromRequest ? `context[${name}] ?? fields[${name}]` : `fields[${name}]`;
  const read = `reader.${reading}(${name}, ${value})`;
  return known === null ? read : `reader.known(${name}, ${read}, known[${i}])`;
}

const isNested = ({ field }: Column) => field.includes(".");
const outerOf = (field: string) => field.slice(0, field.indexOf("."));

/** A nested object with a property that no column reads is also stored whole in `extra`. */
function nestedReader(outer: string, columns: readonly Column[]): ReadNested {
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
    reader.addQuality(nested.reader.quality());
    if (nested.reader.extra(known) !== null) reader.addExtra(outer, toCanonicalJson(reader.sourceOf(outer)));
  };
}
