import {
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBTimestampValue,
} from "@duckdb/node-api";
import { renderings } from "../../src/cli/output/row-formats.ts";
import { dayOf, formatInstant, MICROS_PER_DAY } from "../../src/model/time.ts";
import { type Parameters, select } from "../../src/warehouse/read/query.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";

/** What `mds-sync query` prints. */
export function askSqlite(reader: Connection, sql: string, parameters: Parameters): string {
  const asked = Object.entries(parameters).filter(([name]) => new RegExp(`:${name}\\b`).test(sql));
  const { columns, rows } = select(reader, sql, Object.fromEntries(asked));
  return [...renderings.table(columns, rows)].join("");
}

/** Opens an export's catalogue as its readers do. */
export async function openCatalogue(file: string): Promise<{ connection: DuckDBConnection; close(): void }> {
  const instance = await DuckDBInstance.create(file, { access_mode: "READ_ONLY" });
  const connection = await instance.connect();
  return {
    connection,
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** The same print of what DuckDB answers: its moments, days and booleans as the warehouse writes them. */
export async function askDuckDb(connection: DuckDBConnection, sql: string): Promise<string> {
  const result = await connection.runAndReadAll(sql);
  const rows = result.getRows().map((row) => row.map(asInWarehouse));
  return [...renderings.table(result.columnNames(), rows)].join("");
}

function asInWarehouse(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof DuckDBTimestampValue) return formatInstant(Number(value.micros));
  if (value instanceof DuckDBDateValue) return dayOf(value.days * MICROS_PER_DAY);
  if (value instanceof DuckDBDecimalValue) return value.toDouble();
  return value;
}
