import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportWarehouse } from "../../../src/export/export-warehouse.ts";
import { CATALOGUE } from "../../../src/export/manifest.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { relationDocs } from "../../../src/warehouse/schema/column-docs.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fillDemoWarehouse } from "../demo-warehouse.ts";
import { openCatalogue, queryDuckDb, querySqlite } from "./engines.ts";
import { parseParameters, parseQuestions, readCookbook } from "./page.ts";

const page = readCookbook();
const questions = parseQuestions(page);
const parameters = parseParameters(page);
const folder = temporaryFolder(afterAll);
let reader: Connection;
let catalogue: Awaited<ReturnType<typeof openCatalogue>>;

beforeAll(async () => {
  const { path, clock } = await fillDemoWarehouse(folder);
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
  it("has twenty-two questions", () => {
    expect(questions).toHaveLength(22);
  });

  it.each(questions)("SQLite: $title", ({ sqlite, answer }) => {
    expect(querySqlite(reader, sqlite, parameters)).toBe(answer);
    expect(answer.split("\n").length, "an answer must have rows").toBeGreaterThan(3);
  });

  it("has no query that scans all rows of a stream", () => {
    const bound = Object.fromEntries(Object.keys(parameters).map((name) => [name, 0]));
    for (const { title, sqlite } of questions) {
      const plan = reader.database.prepare(`EXPLAIN QUERY PLAN ${sqlite}`).all(bound) as { detail: string }[];
      expect([title, plan.filter(({ detail }) => /^SCAN (r|t|\w+_rows)\b/.test(detail))]).toEqual([
        title,
        [],
      ]);
    }
  });

  it.each(questions)("DuckDB: $title", async ({ duckdb, answer }) => {
    expect(await queryDuckDb(catalogue.connection, duckdb)).toBe(answer);
  });

  it("agrees with mds-sync gaps about a window", async () => {
    const [, command = ""] = /`mds-sync (gaps .*?)`/.exec(page) ?? [];
    const eth = await runInProcess([...command.split(" "), "--warehouse", reader.path]);
    const btc = await runInProcess([...command.replace("ETH", "BTC").split(" "), "--warehouse", reader.path]);
    expect(eth).toMatchObject({ status: 4, stdout: expect.stringContaining("1 range open (1h 30m)") });
    expect(btc).toMatchObject({ status: 0, stdout: expect.stringContaining("Complete: every second of") });
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
