import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findParameters, parseCookbook } from "../../src/dashboard/page/explore/cookbook.ts";
import { languages } from "../../src/dashboard/page/explore/copy-as.ts";

describe("the explore page", () => {
  it("offers the cookbook's questions with their SQL for SQLite", () => {
    const markdown = readFileSync(new URL("../../docs/cookbook.md", import.meta.url), "utf8");
    const questions = parseCookbook(markdown);
    expect(questions).toHaveLength(22);
    expect(questions[0]).toEqual({
      title: "1. What is everything worth right now?",
      sql: "SELECT name, time, price FROM latest_index_ticks WHERE index_type = 'GWA' ORDER BY name",
    });
    for (const { sql } of questions) expect(sql).toMatch(/^(SELECT|WITH)\b/);
  });

  it("finds the parameters of a statement, but not those in texts and comments", () => {
    const sql =
      "SELECT ':no', \":no\", x::int /* :no */ FROM t WHERE a > :from AND b = :from AND c = :t -- :no\n";
    expect(findParameters(sql)).toEqual(["from", "t"]);
    expect(findParameters("SELECT :a /* :no /* :no")).toEqual(["a"]);
    expect(findParameters("SELECT :a, ':no")).toEqual(["a"]);
  });

  it("copies times of the one grammar as microseconds", () => {
    const params = { a: "@2026-03-01 12:00", b: "@2026-03-01T07:00:00-05:00", c: "@-1d", d: "@soon" };
    const python = languages.Python({ sql: "SELECT 1", params, origin: "", warehouse: "mds.sqlite" });
    expect(python).toMatch(/"a": 1772366400000000, "b": 1772366400000000, "c": \d{16}, "d": "@soon"/);
  });
});
