import type { ScreenValue } from "../../model/answers/query.ts";
import { Failure } from "../../model/failure.ts";
import { toCellText } from "../../model/row-text.ts";
import { quoteName } from "../../model/sql-text.ts";
import type { FileContent, RowSource, SourceRow } from "../parquet-writer.ts";

type ResultRow = readonly unknown[];

export const MAX_SCREEN_ROWS = 10_000;
/** Wide rows end the list earlier: the browser holds all of it. */
const MAX_SCREEN_CHARS = 16 * 1024 * 1024;
/** The types of a Parquet file are concluded from so many rows. */
const SAMPLE_ROWS = 5_000;
const BLOCK_ROWS = 2_048;

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

type ParquetType = "BIGINT" | "DOUBLE" | "TIMESTAMP" | "VARCHAR";

/** The columns that are moments, by their names, and the text of a moment. */
const timeColumn = /^(?:time|first_seen|last_moved|listing|expiration)$|_(?:time|at)$/i;
const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const isMoment = (value: unknown): value is string => typeof value === "string" && moment.test(value);

/**
 * The rows as DuckDB takes them, and the SELECT that gives the columns their types. SQLite has a type per value, Parquet
 * one per column: a column that mixes text and numbers fails, because a silent NULL would be a loss.
 */
export function toParquetSource(columns: readonly string[], rows: Iterator<ResultRow>): FileContent {
  const sample: ResultRow[] = [];
  for (let next = rows.next(); !next.done; next = rows.next())
    if (sample.push(next.value) >= SAMPLE_ROWS) break;
  const names = toUniqueNames(columns);
  const types = columns.map((name, at) =>
    concludeType(
      name,
      sample.map((row) => row[at]),
    ),
  );
  const convert = (row: ResultRow): SourceRow =>
    row.map((value, at) => toSourceValue(value, types[at] ?? "VARCHAR", names[at] ?? ""));
  function* blocks() {
    for (let at = 0; at < sample.length; at += BLOCK_ROWS)
      yield { prefix: [], rows: sample.slice(at, at + BLOCK_ROWS).map(convert) };
    let block: SourceRow[] = [];
    for (let next = rows.next(); !next.done; next = rows.next()) {
      if (block.push(convert(next.value)) < BLOCK_ROWS) continue;
      yield { prefix: [], rows: block };
      block = [];
    }
    if (block.length > 0) yield { prefix: [], rows: block };
  }
  const source: RowSource = {
    // DuckDB gets integers as text: a double would round beyond 2^53.
    columns: names.map((_, at) => ({ name: `c${at}`, kind: types[at] === "DOUBLE" ? "number" : "text" })),
    blocks: blocks(),
  };
  const selected = names.map((name, at) => {
    const value = types[at] === "DOUBLE" ? `nullif(c${at}, 'NaN'::DOUBLE)` : `CAST(c${at} AS ${types[at]})`;
    return `${value} AS ${quoteName(name)}`;
  });
  return { source, select: `SELECT ${selected.join(", ")} FROM handed_over()` };
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

function concludeType(name: string, values: readonly unknown[]): ParquetType {
  const known = values.filter((value) => value !== null);
  if (known.length > 0 && timeColumn.test(name) && known.every(isMoment)) return "TIMESTAMP";
  if (known.length === 0 || known.some((value) => typeof value !== "bigint" && typeof value !== "number"))
    return "VARCHAR";
  return known.every((value) => typeof value === "bigint") ? "BIGINT" : "DOUBLE";
}

function toSourceValue(value: unknown, type: ParquetType, column: string): number | string | null {
  if (value === null) return null;
  if (type === "VARCHAR") return toCellText(value);
  if (type === "BIGINT" && typeof value === "bigint") return String(value);
  if (type === "DOUBLE" && (typeof value === "number" || typeof value === "bigint")) return Number(value);
  // Without its zone, which is UTC in every file.
  if (type === "TIMESTAMP" && isMoment(value)) return value.slice(0, -1);
  throw new Failure(`the column ${column} has values of several types`, {
    code: "bad_query",
    remedy:
      type === "TIMESTAMP"
        ? "give the column a name that is not one of a time"
        : `write CAST(${column} AS TEXT) or CAST(${column} AS REAL)`,
  });
}
