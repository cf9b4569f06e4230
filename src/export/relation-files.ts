import { createHash } from "node:crypto";
import type { ExportRelation, RelationColumnKind, RelationRow } from "../warehouse/read/export-relations.ts";
import { tableContent } from "./parquet-table.ts";
import type { FileContent } from "./parquet-writer.ts";

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

export function relationSource({ columns }: ExportRelation, rows: Iterable<RelationRow>): FileContent {
  return tableContent(
    Object.entries(columns).map(([name, type]) => ({ name, type })),
    rows,
  );
}
