import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { barViews } from "./bar-views.ts";
import { sqliteComparisonViews } from "./comparison-views.ts";
import { coverageViews } from "./coverage-views.ts";
import { rowViews } from "./data-views.ts";
import { researchViews } from "./research-views.ts";
import { revisionRows } from "./revision-rows.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

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
