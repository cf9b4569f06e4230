import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import Database from "better-sqlite3";
import {
  type ExportOptions,
  type ExportResult,
  exportWarehouse,
} from "../../../src/export/export-warehouse.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

export type Row = readonly unknown[];

/** Exports `folder/mds.sqlite` to `folder/export`. */
export function exportIn(folder: string, more: Partial<ExportOptions> = {}): Promise<ExportResult> {
  return exportWarehouse({
    warehouse: join(folder, "mds.sqlite"),
    to: join(folder, "export"),
    program: "0.0.0",
    clock: systemClock,
    ...more,
  });
}

/** Runs SQL in a catalogue, opened read-only as a quant would, with nothing set. */
export async function inCatalogue(catalogue: string, sql: string, ...setUp: string[]): Promise<Row[]> {
  const instance = await DuckDBInstance.create(catalogue, { access_mode: "READ_ONLY", threads: "1" });
  try {
    const connection = await instance.connect();
    for (const statement of setUp) await connection.run(statement);
    return (await connection.runAndReadAll(sql)).getRowsJson() as Row[];
  } finally {
    instance.closeSync();
  }
}

export function inWarehouse(warehouse: string, sql: string): Row[] {
  const database = new Database(warehouse, { readonly: true });
  try {
    return database.prepare(sql).raw().all() as Row[];
  } finally {
    database.close();
  }
}

/** What SQLite's plain types say, from DuckDB's richer ones. */
function plain(name: string, type: string): string {
  const column = `"${name}"`;
  if (type === "TIMESTAMP") return `strftime(${column}, '%Y-%m-%dT%H:%M:%S.%fZ')`;
  if (type === "BOOLEAN") return `CAST(${column} AS INTEGER)`;
  if (type === "BIGINT") return `CAST(${column} AS DOUBLE)`;
  if (type === "DATE") return `CAST(${column} AS VARCHAR)`;
  return column;
}

/** All rows of a relation, from both sides, each as one text and in the order of the texts. */
export async function bothSides(
  folder: string,
  relation: string,
  where = "true",
  ask = (sql: string) => inCatalogue(join(folder, "export/mds.duckdb"), sql),
): Promise<{ warehouse: string[]; catalogue: string[] }> {
  const warehouse = join(folder, "mds.sqlite");
  const names = inWarehouse(warehouse, `SELECT name FROM pragma_table_info('${relation}')`)
    .map(([name]) => String(name))
    // The age is computed when queried.
    .filter((name) => !["absences", "change", "reject", "age_seconds"].includes(name));
  const types = new Map(
    (await ask(`DESCRIBE ${relation}`)).map(([name, type]) => [String(name), String(type)]),
  );
  const shown = names.map((name) => plain(name, types.get(name) ?? "missing"));
  const there = await ask(`SELECT ${shown.join(", ")} FROM ${relation} WHERE ${where}`);
  const quoted = names.map((name) => `"${name}"`);
  const here = inWarehouse(warehouse, `SELECT ${quoted.join(", ")} FROM ${relation} WHERE ${where}`);
  const texts = (rows: Row[]) => rows.map((row) => JSON.stringify(row)).sort();
  return { warehouse: texts(here), catalogue: texts(there) };
}
