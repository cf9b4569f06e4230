import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { rowStreams } from "../../model/streams.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import { barViews } from "./bar-views.ts";
import { sqliteComparisonViews } from "./comparison-views.ts";
import { coverageViews } from "./coverage-views.ts";
import { rowViews } from "./data-views.ts";
import { researchViews } from "./research-views.ts";
import { digitsOf, sqliteDialect } from "./sqlite-dialect.ts";

/**
 * A row as the commit that ended `p` saw it, as a JSON object: decimals as exact text, and the entries of `details`. The text for
 * the digits stands once for all columns: SQLite parses all views whenever a file is opened.
 */
function rowJson({ columns, decimals }: RowTable<never>, row: string): string {
  const source = `CASE WHEN ${row}.source = 0 AND ifnull(${row}.confirmed, p.until) <= p.until THEN 'rest' ELSE 'live' END`;
  const entries = columns.slice(0, -1).map((name, at) => {
    const value = name === "source" ? source : `${row}.${name}`;
    const isDecimal = at < decimals ? 1 : 0;
    return at === 0
      ? `SELECT '${name}' AS name, ${value} AS value, ${isDecimal} AS is_decimal`
      : `SELECT '${name}', ${value}, ${isDecimal}`;
  });
  const object = `(SELECT json_group_object(e.name, CASE WHEN e.is_decimal THEN ${digitsOf("e.value")} ELSE e.value END)
    FROM (${entries.join(" UNION ALL ")}) e)`;
  return `json_patch(${object}, ifnull(${row}.details, '{}'))`;
}

/** The earlier versions of a stream's rows that have the number of a revision, each with the version that followed it. */
function revisionsOf(table: RowTable<never>): string {
  const { stream, table: rows, pastTable, keyColumn } = table;
  const next = (from: string, which: string) => `(SELECT ${rowJson(table, "r")} FROM ${from} r
    WHERE r.${keyColumn} = p.${keyColumn} AND r.ts = p.ts AND (ifnull(r.since, 0) <= p.until OR p.until < 0)${which})`;
  return `SELECT p.revision, CAST('${stream}' AS TEXT) AS stream, p.${keyColumn} AS key, p.ts, CAST(${rowJson(table, "p")} AS TEXT) AS before,
  CAST(coalesce(${next(pastTable, " AND (r.until, r.revision) > (p.until, p.revision) ORDER BY r.until, r.revision LIMIT 1")}, ${next(rows, "")}) AS TEXT) AS after,
  CAST((SELECT c.at FROM commits c WHERE c.seq = p.until) AS INTEGER) AS changed_at
FROM ${pastTable} p WHERE p.revision > 0`;
}

/**
 * The corrected and withdrawn versions of all rows, numbered as they were found: the rows of `revisions`. The version that followed
 * begins with the commit that ended the one before; without one the service has withdrawn the row. Commits below 0 are of revisions
 * that are older than the first one.
 */
const revisionRows = rowStreams.map((stream) => revisionsOf(rowTables[stream])).join("\nUNION ALL\n");

/** The public relations that are views, by name, and `revision_rows`, which `revisions` and the shared warehouse read. */
export const views: Readonly<Record<string, string>> = {
  ...rowViews,
  ...barViews,
  revision_rows: revisionRows,
  ...sqliteComparisonViews,
  ...coverageViews(sqliteDialect),
  ...researchViews,
};

let digest: string | undefined;

/**
 * Views hold no data, so no migration creates them: a program version with other definitions replaces them, in the
 * caller's transaction. Views that users have added stay.
 */
export function replaceViews(database: Database.Database): void {
  digest ??= createHash("sha256").update(JSON.stringify(views)).digest("hex");
  const inPlace = database.prepare("SELECT views FROM warehouse_state").pluck().get();
  if (inPlace === digest) return;
  for (const [name, select] of Object.entries(views)) {
    database.exec(`DROP VIEW IF EXISTS "${name}"`);
    database.exec(`CREATE VIEW "${name}" AS ${select}`);
  }
  database.prepare("UPDATE warehouse_state SET views = ?").run(digest);
}
