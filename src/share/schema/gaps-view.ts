import { gapPartsSql } from "../../warehouse/coverage/gaps.ts";
import { presentTs } from "../../warehouse/views/sql-fragments.ts";
import { momentOf, sharedPresentTs } from "./view-fragments.ts";

/*
 * The rules of the ledger are written once, for SQLite. They use little SQL: integer arithmetic, seeks, and `max` and
 * `min` of several values, which PostgreSQL calls otherwise. A test compares the views of both stores.
 */

/** Like SQLite's `max` and `min` of several values, these return NULL if one of them is NULL. */
export const gapFunctions: readonly string[] = [2, 3].flatMap((count) => {
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

/** Needs `mds` first in the search path when it is created. */
export function gapsView(seriesColumns: string): string {
  return `WITH ${toPostgres(gapPartsSql)}
SELECT s.stream, ${seriesColumns}, s.from_ts, s.to_ts, ${momentOf("s.from_ts")} AS from_time, ${momentOf("s.to_ts")} AS to_time,
  s.state, s.reason, CASE WHEN s.state = 'open' THEN ${momentOf("s.from_ts + s.kept_for")} END AS lost_at
FROM parts s WHERE s.from_ts < s.to_ts`;
}

/** Translates the SQL of the ledger's rules. */
export function toPostgres(sql: string): string {
  const flags = sql.replaceAll(/\bWHEN (\w+\.observed) (THEN|OR)\b/g, "WHEN $1 = 1 $2");
  return renameExtremes(flags.replaceAll(presentTs, sharedPresentTs));
}

/** `max(a, b)` → `mds.larger(a, b)`; `max(a)` is an aggregate and stays. */
function renameExtremes(sql: string): string {
  let result = "";
  let rest = sql;
  for (;;) {
    const match = /\b(max|min)\(/.exec(rest);
    if (!match) return result + rest;
    const open = match.index + match[0].length;
    const { end, count } = findClosing(rest, open);
    const name = match[1] === "max" ? "larger" : "smaller";
    result += rest.slice(0, match.index) + (count > 1 ? `mds.${name}(` : match[0]);
    result += `${renameExtremes(rest.slice(open, end))})`;
    rest = rest.slice(end + 1);
  }
}

/** Where the parenthesis that begins before `from` closes, and how many arguments it encloses. */
function findClosing(sql: string, from: number): { readonly end: number; readonly count: number } {
  let depth = 0;
  let count = 1;
  for (let end = from; end < sql.length; end++) {
    const char = sql[end];
    if (char === "(") depth++;
    else if (char === ")" && depth-- === 0) return { end, count };
    else if (char === "," && depth === 0) count++;
  }
  throw new Error("unbalanced parentheses in the SQL of the gaps");
}
