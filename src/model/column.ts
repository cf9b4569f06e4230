import type { Decimal } from "./decimal.ts";
import type { Micros } from "./time.ts";

/**
 * The type of a column. A view shows a `decimal` as two columns: the REAL and, as `NAME_exact`, all its digits.
 * Row tables store `timestamp` and `source` as INTEGER; views show them as text (`source`: `rest` or `live`).
 */
export type ColumnType = "text" | "integer" | "real" | "decimal" | "timestamp" | "source";

/**
 * Where a view reads a column: `label`: from the dictionary of keys; `time`: from the row's primary key; `row`: from
 * another column of the row table; `details`: from the row's JSON text for rare values; `computed`: from an expression.
 */
export type ColumnSource = "label" | "time" | "row" | "details" | "computed";

/** The methods of the decoder's `RecordReader` that read a field, each with the type that it returns. */
export interface FieldValues {
  /** An id without which the record is rejected. */
  identity: string;
  id: string | null;
  text: string | null;
  flag: boolean | null;
  rank: number | null;
  /** A decimal that cannot be negative. */
  amount: Decimal | null;
  /** The same as `amount`, but `quality` reports its absence. */
  coreAmount: Decimal | null;
  /** The same as `amount`, but JSON null is allowed and counts as absent. */
  optionalAmount: Decimal | null;
  /** A decimal of either sign; JSON null is allowed and counts as absent. */
  rate: Decimal | null;
  /** The timestamp of the record, without which it is rejected. */
  timestamp: Micros;
  /** Any other timestamp. */
  optionalTimestamp: Micros | null;
}
export type FieldReading = keyof FieldValues;

export interface Column<
  Name extends string = string,
  Type extends ColumnType = ColumnType,
  Source extends ColumnSource = ColumnSource,
  Reading extends FieldReading | null = FieldReading | null,
> {
  readonly name: Name;
  readonly type: Type;
  readonly source: Source;
  /** How the decoder reads it; null: records do not contain it. */
  readonly reading: Reading;
  /** The JSON property that it is read from; `outer.inner` for a property of a nested object. */
  readonly field: string;
  /** For a label: the name of its column in the dictionary of keys. */
  readonly from: string;
  /** The values that this version knows; others are stored and counted. */
  readonly known: readonly string[] | null;
  /** The request defines the value; the record's own field is only the fallback. */
  readonly isFromRequest: boolean;
  /** Exports partition their files by this column, in addition to the month. */
  readonly isPartition: boolean;
  /** If set, row tables, stored JSON texts and exported files have it after this column; views use the list's order. */
  readonly storedAfter: string | null;
}

const defaults = {
  reading: null,
  field: "",
  from: "",
  known: null,
  isFromRequest: false,
  isPartition: false,
  storedAfter: null,
} as const;

type Options = Partial<Pick<Column, "known" | "isFromRequest" | "isPartition" | "storedAfter">>;

type DecimalReading = "amount" | "coreAmount" | "optionalAmount" | "rate";

export function decimal<const Name extends string>(
  name: Name,
  field: string,
  reading: DecimalReading = "amount",
  options: Options = {},
): Column<Name, "decimal", "row", DecimalReading> {
  return { ...defaults, name, type: "decimal", source: "row", reading, field, ...options };
}

/** Columns whose type follows from how the decoder reads them. */
const readAs =
  <Type extends ColumnType, Reading extends FieldReading>(type: Type, reading: Reading) =>
  <const Name extends string>(name: Name, field: string): Column<Name, Type, "row", Reading> => ({
    ...defaults,
    name,
    type,
    source: "row",
    reading,
    field,
  });
export const rank = readAs("integer", "rank");
export const flag = readAs("integer", "flag");
export const timestamp = readAs("timestamp", "optionalTimestamp");

export function text<const Name extends string, const Reading extends "identity" | "id" | "text">(
  name: Name,
  field: string,
  reading: Reading,
  options: Options = {},
): Column<Name, "text", "row", Reading> {
  return { ...defaults, name, type: "text", source: "row", reading, field, ...options };
}

/** A column of the dictionary of keys, named `from` there. `field` and `reading`: only if records contain it too. */
export function label<
  const Name extends string,
  const Reading extends "identity" | "id" | "text" | null = null,
>(
  name: Name,
  from: string,
  { field = "", reading, ...options }: Options & { field?: string; reading?: Reading } = {},
): Column<Name, "text", "label", Reading> {
  const read = (reading ?? null) as Reading;
  return { ...defaults, name, type: "text", source: "label", from, field, reading: read, ...options };
}

export function computed<const Name extends string, const Type extends ColumnType>(
  name: Name,
  type: Type,
): Column<Name, Type, "computed", null> {
  return { ...defaults, name, type, source: "computed" };
}

/** A column that the warehouse fills itself, not from a field of the record. */
export function stored<
  const Name extends string,
  const Type extends ColumnType,
  const Source extends ColumnSource = "row",
>(name: Name, type: Type, source?: Source): Column<Name, Type, Source, null> {
  return { ...defaults, name, type, source: (source ?? "row") as Source };
}

/** `funding_rate` → `fundingRate`: what records and the drizzle tables call a column. */
export type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

const camelCased = new Map<string, string>();

/** Remembers each name: lookups ask for every column of every row. */
export function camelCase(name: string): string {
  let found = camelCased.get(name);
  if (found === undefined) {
    found = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    camelCased.set(name, found);
  }
  return found;
}

/** The columns as row tables list them. */
export function inStoredOrder(columns: readonly Column[]): readonly Column[] {
  const moved = columns.filter(({ storedAfter }) => storedAfter !== null);
  return columns
    .filter((column) => !moved.includes(column))
    .flatMap((column) => [column, ...moved.filter(({ storedAfter }) => storedAfter === column.name)]);
}
