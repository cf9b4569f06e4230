import { type Alignment, textTable } from "./text.ts";

export const queryFormats = ["table", "csv", "json", "ndjson"] as const;
export type QueryFormat = (typeof queryFormats)[number];

type Row = readonly unknown[];

/** Pieces of text, made as the rows come: memory stays flat however many there are. */
export type Rendering = (columns: readonly string[], rows: Iterable<Row>) => Iterable<string>;

/** A table is measured by so many rows at a time; it never gets narrower further down. */
const ROWS_TO_MEASURE = 500;

export const renderings: Readonly<Record<QueryFormat, Rendering>> = {
  *table(columns, rows) {
    let alignments: Alignment[] | undefined;
    let widths: number[] = [];
    let batch: Row[] = [];
    const flush = (): string => {
      const isFirst = alignments === undefined;
      alignments ??= columns.map((_, at) =>
        batch.some((row) => typeof row[at] === "string") ? "left" : "right",
      );
      const cells = batch.map((row) => row.map(cellText));
      if (isFirst) widths = [columns, ...cells].reduce(widest, []);
      const rule = widths.map((width) => "-".repeat(width));
      batch = [];
      return `${textTable(isFirst ? [columns, rule, ...cells] : cells, alignments, widths)}\n`;
    };
    for (const row of rows) if (batch.push(row) >= ROWS_TO_MEASURE) yield flush();
    if (alignments === undefined || batch.length > 0) yield flush();
  },

  *csv(columns, rows) {
    yield `${columns.map(csvCell).join(",")}\r\n`;
    for (const row of rows) yield `${row.map(csvCell).join(",")}\r\n`;
  },

  *json(columns, rows) {
    let lead = "[\n";
    for (const row of rows) {
      yield `${lead}${objectText(columns, row)}`;
      lead = ",\n";
    }
    yield lead === "[\n" ? "[]\n" : "\n]\n";
  },

  *ndjson(columns, rows) {
    for (const row of rows) yield `${objectText(columns, row)}\n`;
  },
};

function widest(widths: number[], cells: readonly string[]): number[] {
  return cells.map((cell, at) => Math.max(cell.length, widths[at] ?? 1));
}

/** On a terminal nothing but text: what would move the cursor is shown as a blank. */
function cellText(value: unknown): string {
  return plainText(value).replaceAll(/[^\P{C}]+/gu, " ");
}

function csvCell(value: unknown): string {
  const text = plainText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function plainText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Buffer.isBuffer(value) ? value.toString("hex") : String(value);
}

function objectText(columns: readonly string[], row: Row): string {
  return `{${columns.map((name, at) => `${JSON.stringify(name)}:${jsonText(row[at])}`).join(",")}}`;
}

/** An integer keeps its digits, however many they are. */
function jsonText(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  return JSON.stringify(Buffer.isBuffer(value) ? value.toString("hex") : value) ?? "null";
}
