import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportWarehouse } from "../../../src/export/export-warehouse.ts";
import { CATALOGUE } from "../../../src/export/manifest.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { relationDocs } from "../../../src/warehouse/schema/column-docs.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import type { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fillDemoWarehouse } from "../demo-warehouse.ts";
import { replaceOutputs } from "../page-blocks.ts";
import { openCatalogue, queryDuckDb, querySqlite } from "./engines.ts";
import { cookbookFile, parseQuestions, readCookbook, setPresent } from "./page.ts";

const page = readCookbook();
const questions = parseQuestions(page);
const folder = temporaryFolder(afterAll);
let reader: Connection;
let clock: ManualClock;
let catalogue: Awaited<ReturnType<typeof openCatalogue>>;

beforeAll(async () => {
  const demo = await fillDemoWarehouse(folder);
  const { path } = demo;
  clock = demo.clock;
  reader = openReader(path);
  const to = join(folder, "export");
  await exportWarehouse({ warehouse: path, to, program: "test", clock });
  catalogue = await openCatalogue(join(to, CATALOGUE));
});
afterAll(() => {
  reader?.close();
  catalogue?.close();
});

describe("the cookbook", () => {
  it("links each question to itself on the explore page", () => {
    const links = [
      ...page.matchAll(/^## (\d+)\. .*\n\n\[.*\]\(http:\/\/127\.0\.0\.1:9464\/explore#question=(\d+)\)$/gm),
    ];
    expect(links.map(([, number, link]) => [number, link])).toEqual(
      questions.map((_, at) => [String(at + 1), String(at + 1)]),
    );
  });

  // `npx vitest run test/docs/cookbook -u` writes the answers into the page. Review them before you commit.
  it("shows the answers of SQLite", async () => {
    let answer = "";
    const answered = await replaceOutputs(page, async ({ code }) => {
      if (code.split("\n")[0]?.includes("SQLite"))
        answer = querySqlite(reader, setPresent(code, clock.now()));
      return answer;
    });
    await expect(answered).toMatchFileSnapshot(cookbookFile);
  });

  it.each(questions)("has rows for: $title", ({ answer }) => {
    expect(answer.split("\n").length).toBeGreaterThan(3);
  });

  it("has no query that scans all rows of a stream", () => {
    for (const { title, sqlite } of questions) {
      const plan = reader.database.prepare(`EXPLAIN QUERY PLAN ${sqlite}`).all() as { detail: string }[];
      expect([title, plan.filter(({ detail }) => /^SCAN (r|t|\w+_rows)\b/.test(detail))]).toEqual([
        title,
        [],
      ]);
    }
  });

  it.each(questions)("DuckDB: $title", async ({ duckdb, answer }) => {
    expect(await queryDuckDb(catalogue.connection, setPresent(duckdb, clock.now()))).toBe(answer);
  });
});

describe("the dictionary", () => {
  it("has the types of the stored values", () => {
    for (const [relation, { columns }] of Object.entries(relationDocs)) {
      const types = columns.map(({ name }) => `group_concat(DISTINCT typeof("${name}")) AS "${name}"`);
      const sql = `SELECT ${types.join(", ")} FROM (SELECT * FROM ${relation} LIMIT 300)`;
      const found = reader.database.prepare(sql).get() as Record<string, string | null>;
      for (const { name, type } of columns) {
        const seen = (found[name] ?? "null").split(",").filter((each) => each !== "null");
        expect([relation, name, seen]).toEqual([relation, name, seen.length > 0 ? [type.toLowerCase()] : []]);
      }
    }
  });
});
