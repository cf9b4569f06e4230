import { createHash } from "node:crypto";
import { quoteName } from "../model/sql-text.ts";
import type { ExportRelation, RelationColumnKind, RelationRow } from "../warehouse/read/export-relations.ts";
import type { FileContent, SourceBlock } from "./parquet-writer.ts";

const ROWS_PER_BLOCK = 8_192;

const types: Readonly<Record<RelationColumnKind, string>> = {
  text: "VARCHAR",
  integer: "BIGINT",
  real: "DOUBLE",
  timestamp: "TIMESTAMP",
};

export function relationColumns({ columns }: ExportRelation): { name: string; type: string }[] {
  return Object.entries(columns).map(([name, kind]) => ({ name, type: types[kind] }));
}

/** Changes whenever a row changes. */
export function relationFingerprint({ name }: ExportRelation, rows: Iterable<RelationRow>): string {
  const hash = createHash("sha256").update(name);
  for (const row of rows) hash.update(JSON.stringify(row));
  return hash.digest("hex");
}

export function relationSource(relation: ExportRelation, rows: Iterable<RelationRow>): FileContent {
  const entries = Object.entries(relation.columns);
  const values = entries.map(([name, kind]) => {
    const column = quoteName(name);
    const value = kind === "integer" || kind === "real" ? `nullif(${column}, 'NaN'::DOUBLE)` : column;
    return `CAST(${value} AS ${types[kind]}) AS ${column}`;
  });
  return {
    source: {
      columns: entries.map(([name, kind]) => ({
        name,
        kind: kind === "integer" || kind === "real" ? "number" : "text",
      })),
      blocks: inBlocks(rows),
    },
    select: `SELECT ${values.join(", ")} FROM handed_over()`,
  };
}

function* inBlocks(rows: Iterable<RelationRow>): Generator<SourceBlock> {
  let block: RelationRow[] = [];
  for (const row of rows) {
    block.push(row);
    if (block.length < ROWS_PER_BLOCK) continue;
    yield { prefix: [], rows: block };
    block = [];
  }
  yield { prefix: [], rows: block };
}
