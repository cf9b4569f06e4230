import { usageFailure } from "../../model/failure.ts";
import { textRenderers, toCellText } from "../../model/row-text.ts";
import { readChoice } from "../support/flags.ts";
import { type Alignment, formatTable } from "./text.ts";

export const QUERY_FORMATS = ["table", "csv", "json", "ndjson"] as const;
type QueryFormat = (typeof QUERY_FORMATS)[number];

/** The format of `--format` or `--json`; `fallback`: without either. */
export function readFormat<Format extends string>(
  formats: readonly Format[],
  { format: given, json }: { readonly format?: string; readonly json?: boolean },
  fallback: string,
): Format {
  const name = given ?? (json ? "json" : fallback);
  const format = readChoice("--format", name, formats);
  if (json && format !== "json")
    throw usageFailure(`--json and --format ${format} contradict each other`, "leave out one of them");
  return format;
}

type Row = readonly unknown[];

/** Yields pieces of text while it reads the rows, so that memory does not grow with their number. */
type RowRenderer = (columns: readonly string[], rows: Iterable<Row>) => Iterable<string>;

/** A table is laid out in batches of rows; its columns may grow in a later batch, but never shrink. */
const TABLE_BATCH_ROWS = 500;

export const rowRenderers: Readonly<Record<QueryFormat, RowRenderer>> = {
  *table(columns, rows) {
    let alignments: Alignment[] | undefined;
    let widths: number[] = [];
    let batch: Row[] = [];
    const flush = (): string => {
      const isFirst = alignments === undefined;
      alignments ??= columns.map((_, at) =>
        batch.some((row) => typeof row[at] === "string") ? "left" : "right",
      );
      const cells = batch.map((row) => row.map(toCell));
      if (isFirst) widths = [columns, ...cells].reduce(maxWidths, []);
      const rule = widths.map((width) => "-".repeat(width));
      batch = [];
      return `${formatTable(isFirst ? [columns, rule, ...cells] : cells, alignments, widths)}\n`;
    };
    for (const row of rows) if (batch.push(row) >= TABLE_BATCH_ROWS) yield flush();
    if (alignments === undefined || batch.length > 0) yield flush();
  },

  ...textRenderers,
};

function maxWidths(widths: number[], cells: readonly string[]): number[] {
  return cells.map((cell, at) => Math.max(cell.length, widths[at] ?? 1));
}

/** Replaces control characters with spaces, because they could move the cursor of a terminal. */
function toCell(value: unknown): string {
  return toCellText(value).replaceAll(/[^\P{C}]+/gu, " ");
}
