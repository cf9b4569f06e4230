import type { SqlDialect } from "../../warehouse/views/sql-dialect.ts";

/** The views of an export read other views, which have a column for each exact number and each entry of `details`. */
function decimals(row: string, column: string, name = column): string {
  return `${row}.${column} AS ${name}, ${row}.${column}_exact AS ${name}_exact`;
}

/** Null if one of the values is; DuckDB's greatest and least skip nulls. */
function extreme(of: "greatest" | "least", values: readonly string[]): string {
  return `CASE WHEN ${values.map((value) => `${value} IS NOT NULL`).join(" AND ")} THEN ${of}(${values.join(", ")}) END`;
}

/** `presentTs`: the time of the export; its files do not change afterwards. */
export function duckDbDialect(presentTs: number): SqlDialect {
  return {
    table: (name) => name,
    integer: (sql) => `CAST(${sql} AS BIGINT)`,
    real: (sql) => `CAST(${sql} AS DOUBLE)`,
    text: (sql) => `CAST(${sql} AS VARCHAR)`,
    flag: (sql) => `(${sql})`,
    seconds: (micros) => `(${micros}) / 1000000`,
    moment: (ts) => `make_timestamp(${ts})`,
    wholeMoment: (ts) => `make_timestamp(${ts})`,
    day: (ts) => `CAST(make_timestamp(${ts}) AS DATE)`,
    decimals,
    fewDecimals: decimals,
    details: (row, entry) => `${row}.${entry}`,
    largest: (...values) => extreme("greatest", values),
    smallest: (...values) => extreme("least", values),
    tickerOrder: ["ts"],
    presentTs: String(presentTs),
    yes: "true",
    no: "false",
  };
}
