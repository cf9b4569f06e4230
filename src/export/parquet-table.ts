import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { quoteName } from "../model/sql-text.ts";
import { ParquetWriter, type SourceColumn, type SourceRow } from "./parquet-writer.ts";

/** A column of a single table, and how its values are stored. */
export interface TableColumn {
  readonly name: string;
  /** `timestamp`: given in microseconds since 1970, stored as TIMESTAMP in UTC. */
  readonly type: "text" | "real" | "integer" | "flag" | "timestamp";
}

const storedTypes = {
  text: (name: string) => name,
  real: (name: string) => `nullif(${name}, 'NaN'::DOUBLE)`,
  integer: (name: string) => `CAST(nullif(${name}, 'NaN'::DOUBLE) AS BIGINT)`,
  flag: (name: string) => `nullif(${name}, 'NaN'::DOUBLE) = 1`,
  timestamp: (name: string) => `make_timestamp(CAST(nullif(${name}, 'NaN'::DOUBLE) AS BIGINT))`,
} as const satisfies Record<TableColumn["type"], (name: string) => string>;

/** Writes one Parquet file. DuckDB pulls the blocks as it needs them: memory does not grow with the file. */
export async function writeParquetTable(
  file: string,
  columns: readonly TableColumn[],
  blocks: Iterator<readonly SourceRow[]>,
): Promise<void> {
  const work = mkdtempSync(join(dirname(file), ".mds-parquet-"));
  try {
    const writer = await ParquetWriter.open(work);
    try {
      // The source has names of its own: those of the columns may contain any character.
      const sourceColumns = columns.map(
        ({ type }, at): SourceColumn => ({ name: `c${at}`, kind: type === "text" ? "text" : "number" }),
      );
      const selected = columns.map(
        ({ name, type }, at) => `${storedTypes[type](`c${at}`)} AS ${quoteName(name)}`,
      );
      const source = { columns: sourceColumns, blocks: toSourceBlocks(blocks) };
      await writer.write(file, source, `SELECT ${selected.join(", ")} FROM handed_over()`);
    } finally {
      writer.close();
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function* toSourceBlocks(blocks: Iterator<readonly SourceRow[]>) {
  for (let next = blocks.next(); next.done !== true; next = blocks.next())
    yield { prefix: [], rows: next.value };
}
