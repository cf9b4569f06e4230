import {
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBTimestampValue,
} from "@duckdb/node-api";
import { rowRenderers } from "../../../src/cli/output/row-formats.ts";
import { formatDay, formatTimestamp, MICROS_PER_DAY } from "../../../src/model/time.ts";
import { runReadQuery } from "../../../src/warehouse/query/query.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";

/** The output of `mds-sync query`. */
export function querySqlite(reader: Connection, sql: string): string {
  const { columns, rows } = runReadQuery(reader, sql);
  return [...rowRenderers.table(columns, rows)].join("");
}

/** Opens the catalogue of an export read-only. */
export async function openCatalogue(file: string): Promise<{ connection: DuckDBConnection; close(): void }> {
  const instance = await DuckDBInstance.create(file, { access_mode: "READ_ONLY", threads: "1" });
  const connection = await instance.connect();
  return {
    connection,
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** DuckDB's result in the same format. */
export async function queryDuckDb(connection: DuckDBConnection, sql: string): Promise<string> {
  const result = await connection.runAndReadAll(sql);
  const rows = result.getRows().map((row) => row.map(toWarehouseValue));
  return [...rowRenderers.table(result.columnNames(), rows)].join("");
}

/** Timestamps, days and booleans as in the warehouse. */
export function toWarehouseValue(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof DuckDBTimestampValue) return formatTimestamp(Number(value.micros));
  if (value instanceof DuckDBDateValue) return formatDay(value.days * MICROS_PER_DAY);
  if (value instanceof DuckDBDecimalValue) return value.toDouble();
  return value;
}
