import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { makeMemoryFolder } from "../memory-folder.ts";

/** Set for all workers of one run of the suite. */
export const TEMPLATE_VARIABLE = "MDS_TEST_EMPTY_WAREHOUSE";

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
}

/** Creates an empty warehouse that exists until this process ends. */
export function createTemplate(withoutViews?: RegExp): string {
  const shared = process.env[TEMPLATE_VARIABLE];
  // Nothing runs at the exit of a worker: the run removes the folder of its template.
  const folder = shared ? mkdtempSync(join(dirname(shared), "other-")) : makeMemoryFolder("mds-sync-empty-");
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "mds.sqlite");
  const warehouse = openWriter(path, { clock: { now: () => Date.now() } });
  const { database } = warehouse.connection;
  const views = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'view'").pluck();
  for (const view of views.all()) if (withoutViews?.test(view)) database.exec(`DROP VIEW "${view}"`);
  warehouse.close();
  return path;
}
