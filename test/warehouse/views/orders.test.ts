import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openReader } from "../../../src/warehouse/reader.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import { views } from "../../../src/warehouse/views/views.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import { skipWithout } from "../../support/has-tool.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const folder = temporaryFolder(afterAll);
let path = "";
let reader: Connection;

beforeAll(async () => {
  ({ path } = await fillDemoWarehouse(folder));
  reader = openReader(path);
});
afterAll(() => reader.close());

/** The tables in the order in which a query reads them, each with the loop that it belongs to. */
const plan = (sql: string) =>
  (reader.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { parent: number; detail: string }[])
    .filter(({ detail }) => /^(SCAN|SEARCH) /.test(detail))
    .map(({ parent, detail }) => ({
      parent,
      table: detail.split(" ")[1] ?? "",
      isOptional: detail.endsWith("LEFT-JOIN"),
    }));

// Before 3.41 SQLite mistakes the directions of the tables after a LEFT JOIN that it omits.
describe("the order of time in a view", () => {
  it("comes from a table before which no query omits a LEFT JOIN", () => {
    const omitted = Object.keys(views).flatMap((view) => {
      const all = plan(`SELECT * FROM ${view}`);
      const early = all.filter(
        ({ parent, isOptional }, at) =>
          isOptional && all.slice(at).some((other) => other.parent === parent && !other.isOptional),
      );
      // The fewest columns: any other query omits fewer joins.
      const read = plan(`SELECT 1 FROM ${view}`);
      return early
        .filter(({ table }) => !read.some((other) => other.isOptional && other.table === table))
        .map(({ table }) => `${view}: ${table}`);
    });
    expect(omitted).toEqual([]);
  });

  it("is right in an older SQLite, by every key and name, up and down, sorted and with lag()", async () => {
    const python = process.env.MDS_TEST_PYTHON ?? "/usr/bin/python3";
    if (!existsSync(python)) {
      skipWithout(`${python} is not installed`, "the order of every view in Debian's SQLite");
      return;
    }
    const script = join(import.meta.dirname, "check-orders.py");
    const { stdout } = await promisify(execFile)(python, [script, path], { maxBuffer: 2 ** 24 });
    const { tried, wrong } = JSON.parse(stdout) as { tried: Record<string, number>; wrong: string[] };
    expect(wrong).toEqual([]);
    const timeless = ["derivative_contracts", "markets", "shared_names"];
    expect(Object.keys(tried).concat(timeless).sort()).toEqual(Object.keys(views).sort());
  });
});
