import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { writeShutdownMarker } from "../../../src/warehouse/sqlite/shutdown-marker.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { makeMemoryFolder } from "../memory-folder.ts";

/** Set for all workers of one run of the suite. */
export const TEMPLATE_VARIABLE = "MDS_TEST_EMPTY_WAREHOUSE";

/** Views that neither the sync nor its tests read: three quarters of all view text. */
export const viewsBesideSync =
  /^(?:bars|reconcile|latest|returns|option|futures|index_deviation|perpetuals|spread)|_(?:versions|spans)$/;

const templates = new Map<RegExp | undefined, string>();

/**
 * Copies an empty warehouse to `path`: creating one takes longer than many a test. `withoutViews`: views that the copy lacks,
 * because SQLite parses every view each time a file is opened.
 */
export function copyEmptyWarehouse(path: string, withoutViews?: RegExp): void {
  const shared = withoutViews === undefined ? process.env[TEMPLATE_VARIABLE] : undefined;
  const template = shared ?? templates.get(withoutViews) ?? createTemplate(withoutViews);
  templates.set(withoutViews, template);
  copyFileSync(template, path);
  // Without it the first open would parse every view twice: to find out whether the file is a warehouse, and to check it.
  writeShutdownMarker(path, "clean");
}

/** Creates an empty warehouse that exists until this process ends. */
export function createTemplate(withoutViews?: RegExp): string {
  const shared = process.env[TEMPLATE_VARIABLE];
  // Nothing runs at the exit of a worker: the run removes the folder of its template.
  const folder = shared ? mkdtempSync(join(dirname(shared), "other-")) : makeMemoryFolder("mds-sync-empty-");
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "mds.sqlite");
  if (shared) copyFileSync(shared, path);
  else createEmpty(path);
  if (withoutViews) dropViews(path, withoutViews);
  return path;
}

/** Its past begins with the first writer of each copy, by the clock of that one. */
function createEmpty(path: string): void {
  openWriter(path, { clock: { now: () => Date.now() } }).close();
  const database = new Database(path);
  database.exec("DELETE FROM commits");
  database.close();
}

function dropViews(path: string, dropped: RegExp): void {
  const database = new Database(path);
  const views = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'view'").pluck();
  const names = views.all().filter((name) => dropped.test(name));
  database.exec(`BEGIN; ${names.map((name) => `DROP VIEW "${name}";`).join(" ")} COMMIT`);
  database.close();
}
