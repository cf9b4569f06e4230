import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import Database from "better-sqlite3";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import {
  type ExportOptions,
  type ExportResult,
  type ExportStep,
  exportWarehouse,
} from "../../../src/export/export-warehouse.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openCatalogue, toWarehouseValue } from "../../docs/cookbook/engines.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { fillEverything, openAt } from "./sample-data.ts";

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

/**
 * Exports to a folder, then brings the folder back as it was at a step: as a kill at that step leaves it. `cp` keeps the
 * links between its files, and cannot release the lock of this process.
 */
export async function exportUntil(folder: string, step: ExportStep, nth = 1): Promise<void> {
  const [place, kept] = [join(folder, "export"), join(temporaryFolder(), "kept")];
  let left = nth;
  await exportIn(folder, {
    onStep(reached) {
      if (reached === step && --left === 0) execFileSync("cp", ["-a", place, kept]);
    },
  });
  rmSync(place, { recursive: true });
  execFileSync("cp", ["-a", kept, place]);
}

interface KilledExport {
  readonly step?: ExportStep;
  readonly nth?: number;
  readonly to?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** Exports in a process that dies as by kill -9 at a step, by default when it stores its third file. */
export async function killExport(
  folder: string,
  { step = "file stored", nth = 3, to = join(folder, "export"), env = process.env }: KilledExport = {},
): Promise<void> {
  const script = join(import.meta.dirname, "killed-export.ts");
  const child = spawn(process.execPath, [script, folder, to, step, String(nth)], { stdio: "inherit", env });
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
}

interface ExportedFolder {
  readonly folder: string;
  readonly warehouse: WarehouseWriter;
  readonly result: ExportResult;
}

/** Fills and exports a folder once for a file of tests. Returns a function that brings it back as it was. */
export function shareExport(
  fill = (warehouse: WarehouseWriter) => warehouse.transaction(fillEverything),
  options: Partial<ExportOptions> = {},
): () => ExportedFolder {
  const folder = temporaryFolder(afterAll);
  const pristine = temporaryFolder(afterAll);
  let result: ExportResult;
  beforeAll(async () => {
    const warehouse = openAt(folder);
    fill(warehouse);
    result = await exportIn(folder, options);
    warehouse.close();
    cpSync(folder, pristine, { recursive: true });
  });
  return () => {
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
    cpSync(pristine, folder, { recursive: true });
    const warehouse = openAt(folder);
    onTestFinished(() => warehouse.close());
    return { folder, warehouse, result };
  };
}

/** Runs SQL in a catalogue, opened read-only as a quant would, with nothing set. */
export async function inCatalogue(catalogue: string, sql: string): Promise<Row[]> {
  const { connection, close } = await openCatalogue(catalogue);
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson();
  } finally {
    close();
  }
}

export function inWarehouse(warehouse: string, sql: string): Row[] {
  const database = new Database(warehouse, { readonly: true });
  try {
    return readRows(database, sql);
  } finally {
    database.close();
  }
}

const readRows = (database: Database.Database, sql: string) => database.prepare(sql).raw().all() as Row[];

/** All rows of a relation, from both sides, each as one text and in the order of the texts. */
async function bothSides(
  database: Database.Database,
  relation: string,
  where: string,
  connection: DuckDBConnection,
) {
  const names = readRows(database, `SELECT name FROM pragma_table_info('${relation}')`)
    .map(([name]) => `"${name}"`)
    // The age is computed when queried.
    .filter((name) => !['"absences"', '"change"', '"reject"', '"age_seconds"'].includes(name));
  const sql = `SELECT ${names.join(", ")} FROM ${relation} WHERE ${where}`;
  const texts = (rows: readonly Row[]) => rows.map((row) => JSON.stringify(row)).sort();
  const there = (await connection.runAndReadAll(sql)).getRows().map((row) => row.map(toWarehouseValue));
  return { warehouse: texts(readRows(database, sql)), catalogue: texts(there) };
}

/** Expects the rows of the warehouse in an open catalogue. Returns the relations that have none. */
export async function compareRelations(
  folder: string,
  relations: readonly string[],
  connection: DuckDBConnection,
  where = "true",
): Promise<string[]> {
  // SQLite parses every view each time a file is opened.
  const database = new Database(join(folder, "mds.sqlite"), { readonly: true });
  const empty: string[] = [];
  try {
    for (const relation of relations) {
      const { catalogue, warehouse } = await bothSides(database, relation, where, connection);
      expect(catalogue, relation).toEqual(warehouse);
      if (catalogue.length === 0) empty.push(relation);
    }
  } finally {
    database.close();
  }
  return empty;
}

/** Expects the rows of the warehouse in an export's relations. */
export async function expectSame(folder: string, ...relations: string[]): Promise<void> {
  const { connection, close } = await openCatalogue(join(folder, "export/mds.duckdb"));
  try {
    await compareRelations(folder, relations, connection);
  } finally {
    close();
  }
}
