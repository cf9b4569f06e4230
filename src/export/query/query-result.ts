import type { ScreenValue } from "../../model/answers/query.ts";
import { Failure } from "../../model/failure.ts";
import { toCellText } from "../../model/row-text.ts";
import type { SourceRow, TableColumn } from "../parquet-writer.ts";

type ResultRow = readonly unknown[];

export const MAX_SCREEN_ROWS = 10_000;
/** Wide rows end the list earlier: the browser holds all of it. */
const MAX_SCREEN_CHARS = 16 * 1024 * 1024;
/** The types of a Parquet file are inferred from this many rows. */
const SAMPLE_ROWS = 5_000;

/** Rows as JSON arrays in one line, for the screen. */
export function renderScreenRows(rows: Iterable<ResultRow>): { rows: string; count: number; isCut: boolean } {
  const parts: string[] = [];
  let chars = 0;
  for (const row of rows) {
    if (parts.length >= MAX_SCREEN_ROWS || chars > MAX_SCREEN_CHARS)
      return { rows: parts.join(), count: parts.length, isCut: true };
    const text = JSON.stringify(row.map(toScreenValue));
    chars += text.length;
    parts.push(text);
  }
  return { rows: parts.join(), count: parts.length, isCut: false };
}

/** Browsers read numbers as doubles: a larger integer is sent as its digits. */
function toScreenValue(value: unknown): ScreenValue {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return Buffer.isBuffer(value) ? value.toString("hex") : (value as ScreenValue);
}

/** The columns that are moments, by their names, and the text of a moment. */
const timeColumn = /^(?:time|first_seen|last_moved|listing|expiration)$|_(?:time|at)$/i;
const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const isMoment = (value: unknown): value is string => typeof value === "string" && moment.test(value);

/**
 * The rows with the types of their columns. SQLite has a type per value, Parquet
 * one per column: a column that mixes text and numbers fails, because a silent NULL would be a loss.
 */
export function toParquetTable(
  names: readonly string[],
  rows: Iterator<ResultRow>,
): { readonly columns: readonly TableColumn[]; readonly rows: Iterable<SourceRow> } {
  const sample: ResultRow[] = [];
  for (let next = rows.next(); !next.done; next = rows.next())
    if (sample.push(next.value) >= SAMPLE_ROWS) break;
  const unique = toUniqueNames(names);
  const columns = names.map((name, at): TableColumn => {
    const values = sample.map((row) => row[at]);
    return { name: unique[at] ?? name, type: concludeType(name, values) };
  });
  const convert = (row: ResultRow): SourceRow => columns.map((column, at) => toSourceValue(row[at], column));
  function* converted() {
    yield* sample.map(convert);
    for (let next = rows.next(); !next.done; next = rows.next()) yield convert(next.value);
  }
  return { columns, rows: converted() };
}

/** A file cannot have two columns of one name, in whatever case. */
function toUniqueNames(columns: readonly string[]): string[] {
  const used = new Set<string>();
  return columns.map((column) => {
    let name = column;
    for (let copy = 2; used.has(name.toLowerCase()); copy++) name = `${column}_${copy}`;
    used.add(name.toLowerCase());
    return name;
  });
}

function concludeType(name: string, values: readonly unknown[]): TableColumn["type"] {
  const known = values.filter((value) => value !== null);
  if (known.length > 0 && timeColumn.test(name) && known.every(isMoment)) return "timestamp";
  if (known.length === 0 || known.some((value) => typeof value !== "bigint" && typeof value !== "number"))
    return "text";
  return known.every((value) => typeof value === "bigint") ? "digits" : "real";
}

function toSourceValue(value: unknown, { name, type }: TableColumn): number | string | null {
  if (value === null) return null;
  if (type === "text") return toCellText(value);
  if (type === "digits" && typeof value === "bigint") return String(value);
  if (type === "real" && (typeof value === "number" || typeof value === "bigint")) return Number(value);
  // Without its zone, which is UTC in every file.
  if (type === "timestamp" && isMoment(value)) return value.slice(0, -1);
  throw new Failure(`the column ${name} has values of several types`, {
    code: "bad_query",
    remedy:
      type === "timestamp"
        ? "give the column a name that is not one of a time"
        : `write CAST(${name} AS TEXT) or CAST(${name} AS REAL)`,
  });
}
