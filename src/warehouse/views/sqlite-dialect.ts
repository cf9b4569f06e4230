import type { SqlDialect } from "./sql-dialect.ts";

/*
 * SQL that several views share. It uses only what SQLite 3.37 has, and believes the text of a REAL only if it gives the REAL again:
 * the digits differ between versions. A computed column has no type of its own, and tools that read the types of a view (SQLAlchemy,
 * Grafana, DuckDB) need one: each is cast in the outermost SELECT. Stored columns are not cast: a cast hides the index.
 */

/** Now by the service's clock, in microseconds. */
export const presentTs =
  "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + (SELECT clock_skew FROM warehouse_state))";

/** The digits of a REAL of at most 15 significant digits, by integer arithmetic: docs/decisions/exact-decimals.md. */
export function digitsOf(real: string): string {
  const scaled = `CAST(round(abs(${real}) * d.factor) AS INTEGER)`;
  const plain = `(${scaled} / d.unit) || '.' || d.zeros || substr(d.unit + ${scaled} % d.unit, 2)`;
  return `(SELECT substr('-', 1, ${real} < 0) || rtrim(rtrim(${plain}, '0'), '.') FROM decimal_scales d WHERE d.low <= abs(${real}) ORDER BY d.low DESC LIMIT 1)`;
}

/** `digitsOf` in half the time for the usual sizes, which printf writes without an exponent. */
export function quickDigitsOf(real: string): string {
  const printed = `printf('%.15g', ${real})`;
  return `CASE WHEN abs(${real}) BETWEEN 1e-4 AND 1e14 AND CAST(${printed} AS REAL) = ${real} THEN ${printed} ELSE ${digitsOf(real)} END`;
}

/**
 * All digits of a decimal (docs/decisions/exact-decimals.md), in two thirds of the text that is the fastest: SQLite parses all views
 * whenever a file is opened.
 */
export function slowExactDigits(row: string, column: string): string {
  return `coalesce(${fromDetails(row, column)}, ${digitsOf(`${row}.${column}`)})`;
}

/** One entry of a row's `details`. */
export function fromDetails(row: string, entry: string): string {
  return `json_extract(${row}.details, '$.${entry}')`;
}

/**
 * WHERE: always true, but SQLite does not omit a LEFT JOIN that WHERE reads. Before 3.41 it omits one wrongly: the tables after it are
 * read in the order of their neighbour, so that `ORDER BY ts` may run backwards.
 */
export function keepJoins(...columns: readonly string[]): string {
  return `coalesce(${columns.join(", ")}, 0) IS NOT NULL`;
}

/** SQLite. A flag is 0 or 1, a moment a text. */
export const sqliteDialect: SqlDialect = {
  table: (name) => name,
  integer: (sql) => `CAST(${sql} AS INTEGER)`,
  real: (sql) => `CAST(${sql} AS REAL)`,
  text: (sql) => `CAST(${sql} AS TEXT)`,
  flag: (sql) => `CAST(${sql} AS INTEGER)`,
  seconds: (micros) => `(${micros}) / 1000000.0`,
  // Only whole seconds go through strftime, which rounds.
  moment(ts) {
    const fraction = `((${ts}) % 1000000 + 1000000) % 1000000`;
    return `CAST(strftime('%Y-%m-%dT%H:%M:%S', ((${ts}) - ${fraction}) / 1000000, 'unixepoch') || printf('.%06dZ', ${fraction}) AS TEXT)`;
  },
  wholeMoment: (ts) => `CAST(strftime('%Y-%m-%dT%H:%M:%S.000000Z', (${ts}) / 1000000, 'unixepoch') AS TEXT)`,
  // The expression of the index `daily_bars_by_day`.
  day: (ts) => `CAST(strftime('%Y-%m-%d', ${ts} / 1000000, 'unixepoch') AS TEXT)`,
  decimals(row, column, name = column) {
    const real = `${row}.${column}`;
    return `${real} AS ${name}, CAST(coalesce(${fromDetails(row, column)}, ${quickDigitsOf(real)}) AS TEXT) AS ${name}_exact`;
  },
  fewDecimals: (row, column, name = column) =>
    `${row}.${column} AS ${name}, CAST(${slowExactDigits(row, column)} AS TEXT) AS ${name}_exact`,
  details: fromDetails,
  largest: (...values) => `max(${values.join(", ")})`,
  smallest: (...values) => `min(${values.join(", ")})`,
  tickerOrder: ["part", "ts"],
  presentTs,
  yes: "1",
  no: "0",
};
