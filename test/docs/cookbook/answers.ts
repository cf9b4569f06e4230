import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openReader } from "../../../src/warehouse/reader.ts";
import { fillDemoWarehouse } from "../demo-warehouse.ts";
import { querySqlite } from "./engines.ts";
import { cookbookFile, parseQuestions, readCookbook, replaceAnswers, setPresent } from "./page.ts";

// `node test/docs/cookbook/answers.ts` writes the answers into the cookbook. Review them before you commit.
const page = readCookbook();
const folder = mkdtempSync(join(tmpdir(), "mds-cookbook-"));
try {
  const { path, clock } = await fillDemoWarehouse(folder);
  const reader = openReader(path);
  const ask = (sql: string) => querySqlite(reader, setPresent(sql, clock.now()), {});
  const answers = new Map(parseQuestions(page).map(({ title, sqlite }) => [title, ask(sqlite)]));
  reader.close();
  writeFileSync(cookbookFile, replaceAnswers(page, answers));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
