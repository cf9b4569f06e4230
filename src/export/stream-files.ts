import type { ColumnType } from "../model/column.ts";
import { quoteName } from "../model/sql-text.ts";
import { hasHistory, isDaily, type RowStream } from "../model/streams.ts";
import { labelColumns } from "../warehouse/read/export-periods.ts";
import { comparesPrices, type PeriodContent } from "../warehouse/read/export-rows.ts";
import { rowColumns, rowTables } from "../warehouse/tables/row-tables.ts";
import type { FileContent, RowSource, SourceBlock, SourceColumn } from "./parquet-writer.ts";

/** The streams whose files may be partitioned by time, in the order of the export. */
export const exportStreams = Object.keys(rowTables) as RowStream[];

/** A column of the files of a stream. */
export interface FileColumn {
  readonly name: string;
  readonly type: string;
  /** The SQL that computes it from a row of `source_rows()`. */
  readonly value: string;
}

const number = (name: string, type: string) => `CAST(nullif(${name}, 'NaN'::DOUBLE) AS ${type})`;

/** The name of the flag column: whether the ledger covers the row, or whether a ticker repeats the previous price. */
function flagColumn(stream: RowStream): string | undefined {
  if (comparesPrices(stream)) return "repeats_price";
  if (!hasHistory(stream)) return undefined;
  return isDaily(stream) ? "is_final" : "is_settled";
}

export function decimalsOf(stream: RowStream): readonly string[] {
  return rowColumns(stream)
    .filter(({ type }) => type === "decimal")
    .map(({ name }) => name);
}

/**
 * The columns of a stream's files, without the partition columns. Next to each decimal is `NAME_digits`: the exact text,
 * only if the DOUBLE cannot represent it. Timestamps are TIMESTAMP in UTC without a zone: with a zone, DuckDB would start
 * days in the reader's zone, and the same SQL would give each reader different bars.
 */
export function fileColumns(stream: RowStream, hasDetails = true): FileColumn[] {
  const details = (entry: string) =>
    hasDetails ? `json_extract_string(details, '$.${entry}')` : "NULL::VARCHAR";
  const labels = labelColumns(stream).map(({ name }) => name);
  const timeColumns: FileColumn[] = isDaily(stream)
    ? [{ name: "day", type: "DATE", value: "CAST(make_timestamp(CAST(moment AS BIGINT)) AS DATE)" }]
    : [
        { name: "ts", type: "BIGINT", value: "CAST(moment AS BIGINT)" },
        { name: "time", type: "TIMESTAMP", value: "make_timestamp(CAST(moment AS BIGINT))" },
      ];
  const decimals = decimalsOf(stream);
  const others = rowColumns(stream)
    .filter(({ type }) => type !== "decimal")
    .map(({ name, type }) => otherColumn(name, type));
  const flag = flagColumn(stream);
  return [
    ...labels.map((name) => ({ name, type: "VARCHAR", value: `label_${name}` })),
    ...timeColumns,
    ...decimals.flatMap((name) => [
      { name, type: "DOUBLE", value: `nullif(${name}, 'NaN'::DOUBLE)` },
      { name: `${name}_digits`, type: "VARCHAR", value: details(name) },
    ]),
    ...(flag ? [{ name: flag, type: "BOOLEAN", value: "nullif(flag, 'NaN'::DOUBLE) = 1" }] : []),
    ...others,
    { name: "quality", type: "VARCHAR", value: details("quality") },
    { name: "extra", type: "VARCHAR", value: details("extra") },
  ];
}

function otherColumn(name: string, type: ColumnType): FileColumn {
  if (type === "source")
    return { name, type: "VARCHAR", value: `CASE ${name} WHEN 0 THEN 'rest' ELSE 'live' END` };
  if (type === "text") return { name, type: "VARCHAR", value: name };
  if (type === "timestamp")
    return { name, type: "TIMESTAMP", value: `make_timestamp(${number(name, "BIGINT")})` };
  return { name, type: "INTEGER", value: number(name, "INTEGER") };
}

/** The labels of the series of a file, shared by their rows. */
export function labelSource(stream: RowStream, labels: readonly (readonly (string | null)[])[]): RowSource {
  const names = labelColumns(stream).map(({ name }) => name);
  const rows = labels.map((of, at) => [at, ...of]);
  return {
    columns: [
      { name: "series_at", kind: "number" },
      ...names.map((name) => ({ name: `label_${name}`, kind: "text" }) as const),
    ],
    blocks: [{ prefix: [], rows }].values(),
  };
}

/** The rows of a period as the source of `source_rows()`, and the SQL that selects the file's columns from them. */
export function periodSource(
  stream: RowStream,
  content: PeriodContent,
  onRows: (count: number) => void,
): FileContent {
  const sourceColumns: SourceColumn[] = [
    { name: "series_at", kind: "number" },
    { name: "moment", kind: "number" },
    ...rowColumns(stream).map(
      ({ name, type }): SourceColumn => ({ name, kind: type === "text" ? "text" : "number" }),
    ),
    // Hardly any period has `details`; a column of nulls would cost as much as the prices.
    ...(content.hasDetails ? [{ name: "details", kind: "text" } as const] : []),
    ...(flagColumn(stream) ? [{ name: "flag", kind: "number" } as const] : []),
  ];
  const values = fileColumns(stream, content.hasDetails).map(
    ({ name, value }) => `${value} AS ${quoteName(name)}`,
  );
  return {
    source: { columns: sourceColumns, blocks: toSourceBlocks(content, onRows) },
    select: `SELECT ${values.join(", ")} FROM source_rows() r JOIN labels l ON l.series_at = r.series_at`,
  };
}

function* toSourceBlocks(content: PeriodContent, onRows: (count: number) => void): Generator<SourceBlock> {
  for (const { at, rows, flags } of content.blocks()) {
    yield { prefix: [at], rows, flags };
    onRows(rows.length);
  }
}
