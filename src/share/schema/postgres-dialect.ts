import type { SqlDialect } from "../../warehouse/views/sql-dialect.ts";

/**
 * Microseconds since 1970 as a moment: the expression of the indexes on `time`, so it must be immutable. A double is exact to
 * the microsecond until the year 2100.
 */
export function moment(ts: string): string {
  return `to_timestamp((${ts}) / 1000000.0::double precision)`;
}

/** The expression of an index, as `moment` is. */
export function dayOf(ts: string): string {
  return `(${moment(ts)} AT TIME ZONE 'UTC')::date`;
}

function details(row: string, entry: string): string {
  return `(${row}.details ->> '${entry}')`;
}

/** The exact digits of a decimal: docs/decisions/exact-decimals.md. */
export function exactNumber(row: string, column: string): string {
  return `coalesce(${details(row, column)}::numeric, ${row}.${column}::numeric)`;
}

function decimals(row: string, column: string, name = column): string {
  return `${row}.${column}${name === column ? "" : ` AS ${name}`}, ${exactNumber(row, column)} AS ${name}_exact`;
}

export const postgresDialect: SqlDialect = {
  table: (name) => `mds.${name}`,
  integer: (sql) => `(${sql})::bigint`,
  real: (sql) => `(${sql})::double precision`,
  text: (sql) => `(${sql})::text`,
  flag: (sql) => `(${sql})`,
  seconds: (micros) => `(${micros}) / 1000000.0::double precision`,
  moment,
  wholeMoment: moment,
  day: dayOf,
  decimals,
  fewDecimals: decimals,
  details,
  largest: (...values) => `mds.larger(${values.join(", ")})`,
  smallest: (...values) => `mds.smaller(${values.join(", ")})`,
  tickerOrder: ["ts"],
  // Full seconds, as in SQLite.
  presentTs:
    "(floor(extract(epoch FROM statement_timestamp()))::bigint * 1000000 + (SELECT x.clock_skew FROM mds.source x))",
  yes: "true",
  no: "false",
};

/** `larger` and `smaller` return null if one of their values is null, unlike `greatest` and `least`. */
export const dialectFunctions: readonly string[] = [2, 3].flatMap((count) => {
  const types = Array(count).fill("bigint").join(", ");
  const values = Array.from({ length: count }, (_, i) => `$${i + 1}`).join(", ");
  return [
    ["larger", "greatest"],
    ["smaller", "least"],
  ].map(
    ([name, of]) =>
      `CREATE OR REPLACE FUNCTION mds.${name}(${types}) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT ${of}(${values})'`,
  );
});
