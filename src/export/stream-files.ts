import type { RowStream } from "../model/streams.ts";
import { exportDictionaries } from "../warehouse/read/export-months.ts";
import type { MonthContent } from "../warehouse/read/export-rows.ts";
import { rowTables } from "../warehouse/tables/row-tables.ts";
import { quotedName, type RowSource, type SourceBlock, type SourceColumn } from "./parquet-writer.ts";

/** The streams that are parted by month, in the order in which they are exported. */
export const monthlyStreams = Object.keys(rowTables) as RowStream[];

/** A column of the files of a stream. */
export interface FileColumn {
  readonly name: string;
  readonly type: string;
  /** What gives it from the rows handed over. */
  readonly value: string;
}

const number = (name: string, type: string) => `CAST(nullif(${name}, 'NaN'::DOUBLE) AS ${type})`;
const fromAside = (entry: string) => `json_extract_string(aside, '$.${entry}')`;

/** What the flag of a row means in each stream: that the ledger proves it (the contract's names), or that a price is repeated. */
const flagColumns: Partial<Record<RowStream, string>> = {
  ohlcv: "is_final",
  index_ticks: "is_settled",
  exchange_ticks: "repeats_price",
};

export function decimalsOf(stream: RowStream): readonly string[] {
  return rowTables[stream].columns.slice(0, rowTables[stream].decimals);
}

/**
 * The columns of a stream's files without those of its folders. Beside each decimal stands `NAME_digits`: the exact text, only
 * where the DOUBLE cannot give it back. Moments are TIMESTAMP without a zone, in UTC: with one, DuckDB would cut days and
 * print times by the zone of whoever asks, and the same SQL would give each reader other bars.
 */
export function fileColumns(stream: RowStream, hasAside = true): FileColumn[] {
  const { columns, momentColumn } = rowTables[stream];
  const aside = (entry: string) => (hasAside ? fromAside(entry) : "NULL::VARCHAR");
  const labels = Object.values(exportDictionaries[stream].labels);
  const moments: FileColumn[] =
    momentColumn === "day"
      ? [{ name: "day", type: "DATE", value: "DATE '1970-01-01' + CAST(moment AS INTEGER)" }]
      : [
          { name: "ts", type: "BIGINT", value: "CAST(moment AS BIGINT)" },
          { name: "time", type: "TIMESTAMP", value: "make_timestamp(CAST(moment AS BIGINT))" },
        ];
  const decimals = decimalsOf(stream);
  const others = columns.slice(decimals.length, -1).map((name): FileColumn => {
    if (name === "source")
      return { name, type: "VARCHAR", value: "CASE source WHEN 0 THEN 'rest' ELSE 'live' END" };
    if (name === "record_id") return { name, type: "VARCHAR", value: name };
    if (name === "last_moved")
      return { name, type: "TIMESTAMP", value: `make_timestamp(${number(name, "BIGINT")})` };
    return { name, type: "INTEGER", value: number(name, "INTEGER") };
  });
  const flag = flagColumns[stream];
  return [
    ...labels.map((name) => ({ name, type: "VARCHAR", value: `label_${name}` })),
    ...moments,
    ...decimals.flatMap((name) => [
      { name, type: "DOUBLE", value: `nullif(${name}, 'NaN'::DOUBLE)` },
      { name: `${name}_digits`, type: "VARCHAR", value: aside(name) },
    ]),
    ...(flag ? [{ name: flag, type: "BOOLEAN", value: "nullif(flag, 'NaN'::DOUBLE) = 1" }] : []),
    ...others,
    { name: "quality", type: "VARCHAR", value: aside("quality") },
    { name: "extra", type: "VARCHAR", value: aside("extra") },
  ];
}

/** What the series of a month are called, to be shared by their rows. */
export function labelSource(stream: RowStream, { labels }: MonthContent): RowSource {
  const names = Object.values(exportDictionaries[stream].labels);
  const rows = labels.map((of, at) => [at, ...of]);
  return {
    columns: [
      { name: "series_at", kind: "number" },
      ...names.map((name) => ({ name: `label_${name}`, kind: "text" }) as const),
    ],
    blocks: [{ prefix: [], rows }].values(),
  };
}

/** The rows of a month as they are handed over, and the SQL that makes the file's columns of them. */
export function monthSource(
  stream: RowStream,
  content: MonthContent,
  onRows: (count: number) => void,
): { source: RowSource; select: string } {
  const { columns } = rowTables[stream];
  // Hardly any month has anything aside; a column of nulls that nobody reads would cost as much as the prices.
  const kept = content.hasAside ? columns : columns.slice(0, -1);
  const handedOver: SourceColumn[] = [
    { name: "series_at", kind: "number" },
    { name: "moment", kind: "number" },
    ...kept.map(
      (name): SourceColumn => ({
        name,
        kind: name === "aside" || name === "record_id" ? "text" : "number",
      }),
    ),
    ...(flagColumns[stream] ? [{ name: "flag", kind: "number" } as const] : []),
  ];
  const values = fileColumns(stream, content.hasAside).map(
    ({ name, value }) => `${value} AS ${quotedName(name)}`,
  );
  return {
    source: { columns: handedOver, blocks: handOver(content, onRows) },
    select: `SELECT ${values.join(", ")} FROM handed_over() r JOIN labels l ON l.series_at = r.series_at`,
  };
}

function* handOver(content: MonthContent, onRows: (count: number) => void): Generator<SourceBlock> {
  for (const { at, rows, flags } of content.blocks()) {
    yield { prefix: [at], rows, flags };
    onRows(rows.length);
  }
}
