import { type Column, type FieldReading, inStoredOrder } from "../../model/column.ts";
import { propertyOf } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import { toCanonicalJson } from "./json-source.ts";
import type { Properties, RecordReader } from "./record-reader.ts";

/** Values that the request has and the record lacks. */
export interface DecodeContext {
  readonly derivativeType?: string | undefined;
  /** Records with a later timestamp are rejected; absent: none. */
  readonly latest?: Micros;
}

type ColumnValues = Record<string, unknown>;

/** Reads the columns that records have, each into a property of a new object. */
export type ReadColumns = (reader: RecordReader, fields: Properties, context: DecodeContext) => ColumnValues;

type ReadTime = (reader: RecordReader, fields: Properties) => Micros;
type ReadNested = (reader: RecordReader, fields: Properties, record: ColumnValues) => void;

export interface ColumnReader {
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
export function createColumnReader(columns: readonly Column[], readTime?: ReadTime): ColumnReader {
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
    reader.addQuality(nested.reader.quality());
    if (nested.reader.extra(known) !== null) reader.addExtra(outer, toCanonicalJson(reader.sourceOf(outer)));
  };
}
