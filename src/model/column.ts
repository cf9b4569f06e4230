import type { Decimal } from "./decimal.ts";
import type { Micros } from "./time.ts";

/**
 * What a column holds. `decimal` stands for two SQL columns: the REAL and, under `NAME_exact`, all its digits.
 * `timestamp` is an INTEGER in a row table and text in a view; `source` is 0 or 1 there and `rest` or `live` here.
 */
export type ColumnType = "text" | "integer" | "real" | "decimal" | "timestamp" | "source";

/**
 * Where a view finds a column: `label` in the dictionary of keys, `time` in the row's primary key, `row` in another
 * column of the row table, `aside` in the row's nullable JSON text; `computed`: the view has its own expression.
 */
export type ColumnSource = "label" | "time" | "row" | "aside" | "computed";

/** How the decoder reads a field, by the name of the method of its reader, and the value that it gives. */
export interface FieldValues {
  /** An id without which the record is rejected. */
  identity: string;
  id: string | null;
  text: string | null;
  flag: boolean | null;
  rank: number | null;
  /** A decimal that cannot be negative. */
  amount: Decimal | null;
  /** The same; its absence makes the record doubtful. */
  coreAmount: Decimal | null;
  /** The same; null counts as absent. */
  optionalAmount: Decimal | null;
  /** A decimal of either sign; null counts as absent. */
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
  /** One line of the dictionary. */
  readonly meaning: string;
  /** Null: no record has it. */
  readonly reading: Reading;
  /** The JSON property that it is read from; `outer.inner` for a property of a nested object. */
  readonly field: string;
  /** The column of the dictionary of keys that a label is taken from. */
  readonly from: string;
  /** The values that this version knows; others are stored and counted. */
  readonly known: readonly string[] | null;
  /** The request tells the value, not the record. */
  readonly isFromRequest: boolean;
  /** The values part the files of an export, beside the month. */
  readonly isPartition: boolean;
  /** Row tables list it after this column, not where views do: the order of stored JSON texts and of exported files. */
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
  meaning: string,
  reading: DecimalReading = "amount",
  options: Options = {},
): Column<Name, "decimal", "row", DecimalReading> {
  return { ...defaults, name, type: "decimal", source: "row", reading, field, meaning, ...options };
}

export function rank<const Name extends string>(
  name: Name,
  field: string,
  meaning: string,
): Column<Name, "integer", "row", "rank"> {
  return { ...defaults, name, type: "integer", source: "row", reading: "rank", field, meaning };
}

export function flag<const Name extends string>(
  name: Name,
  field: string,
  meaning: string,
): Column<Name, "integer", "row", "flag"> {
  return { ...defaults, name, type: "integer", source: "row", reading: "flag", field, meaning };
}

export function timestamp<const Name extends string>(
  name: Name,
  field: string,
  meaning: string,
): Column<Name, "timestamp", "row", "optionalTimestamp"> {
  return {
    ...defaults,
    name,
    type: "timestamp",
    source: "row",
    reading: "optionalTimestamp",
    field,
    meaning,
  };
}

export function text<const Name extends string, const Reading extends "identity" | "id" | "text">(
  name: Name,
  field: string,
  meaning: string,
  reading: Reading,
  options: Options = {},
): Column<Name, "text", "row", Reading> {
  return { ...defaults, name, type: "text", source: "row", reading, field, meaning, ...options };
}

/** A column of the dictionary of keys, `from` its name there; `field` and `reading` where records have it. */
export function label<
  const Name extends string,
  const Reading extends "identity" | "id" | "text" | null = null,
>(
  name: Name,
  from: string,
  meaning: string,
  { field = "", reading, ...options }: Options & { field?: string; reading?: Reading } = {},
): Column<Name, "text", "label", Reading> {
  const read = (reading ?? null) as Reading;
  return {
    ...defaults,
    name,
    type: "text",
    source: "label",
    from,
    meaning,
    field,
    reading: read,
    ...options,
  };
}

export function computed<const Name extends string, const Type extends ColumnType>(
  name: Name,
  type: Type,
  meaning: string,
): Column<Name, Type, "computed", null> {
  return { ...defaults, name, type, source: "computed", meaning };
}

/** A column that the warehouse fills by itself, not from a field. */
export function stored<
  const Name extends string,
  const Type extends ColumnType,
  const Source extends ColumnSource = "row",
>(name: Name, type: Type, meaning: string, source?: Source): Column<Name, Type, Source, null> {
  return { ...defaults, name, type, source: (source ?? "row") as Source, meaning };
}

/** `funding_rate` → `fundingRate`: what records and the drizzle tables call a column. */
export type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

export function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The columns as row tables list them. */
export function inStoredOrder(columns: readonly Column[]): readonly Column[] {
  const moved = columns.filter(({ storedAfter }) => storedAfter !== null);
  return columns
    .filter((column) => !moved.includes(column))
    .flatMap((column) => [column, ...moved.filter(({ storedAfter }) => storedAfter === column.name)]);
}
