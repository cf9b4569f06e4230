import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { quoteName } from "../model/sql-text.ts";
import { type FileContent, ParquetWriter, type SourceBlock, type SourceRow } from "./parquet-writer.ts";

const ROWS_PER_BLOCK = 2_048;

const number = (name: string) => `nullif(${name}, 'NaN'::DOUBLE)`;

/** By type: what DuckDB gets for a value, and how it is stored. */
const columnTypes = {
  text: { kind: "text", store: (name: string) => name },
  real: { kind: "number", store: number },
  integer: { kind: "number", store: (name: string) => `CAST(${number(name)} AS BIGINT)` },
  /** An integer as text, because a double rounds beyond 2^53. */
  digits: { kind: "text", store: (name: string) => `CAST(${name} AS BIGINT)` },
  flag: { kind: "number", store: (name: string) => `${number(name)} = 1` },
  /** A moment in microseconds since 1970. */
  micros: { kind: "number", store: (name: string) => `make_timestamp(CAST(${number(name)} AS BIGINT))` },
  /** A moment as text, in UTC. */
  timestamp: { kind: "text", store: (name: string) => `CAST(${name} AS TIMESTAMP)` },
} as const;

export interface TableColumn {
  readonly name: string;
  readonly type: keyof typeof columnTypes;
}

/** Rows with a value for each column, as a file has them. */
export function tableContent(columns: readonly TableColumn[], rows: Iterable<SourceRow>): FileContent {
  // The source has names of its own: those of the columns may contain any character.
  const selected = columns.map(
    ({ name, type }, at) => `${columnTypes[type].store(`c${at}`)} AS ${quoteName(name)}`,
  );
  return {
    source: {
      columns: columns.map(({ type }, at) => ({ name: `c${at}`, kind: columnTypes[type].kind })),
      blocks: inBlocks(rows),
    },
    select: `SELECT ${selected.join(", ")} FROM source_rows()`,
  };
}

function* inBlocks(rows: Iterable<SourceRow>): Generator<SourceBlock> {
  let block: SourceRow[] = [];
  for (const row of rows) {
    if (block.push(row) < ROWS_PER_BLOCK) continue;
    yield { prefix: [], rows: block };
    block = [];
  }
  yield { prefix: [], rows: block };
}

/** Writes one Parquet file. DuckDB pulls the blocks as it needs them: memory does not grow with the file. */
export async function writeParquetTable(
  file: string,
  columns: readonly TableColumn[],
  rows: Iterable<SourceRow>,
): Promise<void> {
  const work = mkdtempSync(join(dirname(file), ".mds-parquet-"));
  try {
    const writer = await ParquetWriter.open(work);
    try {
      const { source, select } = tableContent(columns, rows);
      await writer.write(file, source, select);
    } finally {
      writer.close();
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
