import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { makeMemoryFolder } from "../memory-folder.ts";

const templates = new Map<RegExp | undefined, string>();

/**
 * Copies an empty warehouse to `path`: creating one takes longer than many a test. `withoutViews`: views that the copy lacks,
 * because SQLite parses every view each time a file is opened.
 */
export function copyEmptyWarehouse(path: string, withoutViews?: RegExp): void {
  const template = templates.get(withoutViews) ?? createTemplate(withoutViews);
  templates.set(withoutViews, template);
  copyFileSync(template, path);
}

function createTemplate(withoutViews: RegExp | undefined): string {
  const folder = makeMemoryFolder("mds-sync-empty-");
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "mds.sqlite");
  const warehouse = openWriter(path, { clock: { now: () => Date.now() } });
  const { database } = warehouse.connection;
  const views = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'view'").pluck();
  for (const view of views.all()) if (withoutViews?.test(view)) database.exec(`DROP VIEW "${view}"`);
  warehouse.close();
  return path;
}
