import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openReader } from "../../src/warehouse/reader.ts";
import { askSqlite } from "./cookbook-engines.ts";
import { cookbookFile, parametersOf, questionsOf, readCookbook, withAnswers } from "./cookbook-page.ts";
import { fillDemoWarehouse } from "./demo-warehouse.ts";

// Writes the answers of the warehouse into the cookbook: `node test/docs/cookbook-answers.ts`. Read them before they are kept.
const page = readCookbook();
const folder = mkdtempSync(join(tmpdir(), "mds-cookbook-"));
try {
  const { path } = await fillDemoWarehouse(folder);
  const reader = openReader(path);
  const ask = (sql: string) => askSqlite(reader, sql, parametersOf(page));
  const answers = new Map(questionsOf(page).map(({ title, sqlite }) => [title, ask(sqlite)]));
  reader.close();
  writeFileSync(cookbookFile, withAnswers(page, answers));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
