import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findParameters, languages, parseCookbook } from "../../src/dashboard/page/explore/statements.ts";

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

  it("copies values as the literals of a language", () => {
    const times = { a: "@2026-03-01 12:00", b: "@2026-03-01T07:00:00-05:00", c: "@-1d", d: "@soon" };
    const numbers = { i: "5", r: "0.5", zeros: "007", word: "Infinity", hex: "0x10", e: "" };
    const statement = { sql: "SELECT 1", origin: "", warehouse: "mds.sqlite" };
    const copied = (language: keyof typeof languages) =>
      languages[language]({ ...statement, params: { ...times, ...numbers } });
    expect(copied("Python")).toMatch(
      /"a": 1772366400000000, "b": 1772366400000000, "c": \d{16}, "d": "@soon", "i": 5, "r": 0\.5, "zeros": "007", "word": "Infinity", "hex": "0x10", "e": ""/,
    );
    // A number of TypeScript would be bound as a REAL.
    expect(copied("TypeScript")).toMatch(
      /"a": 1772366400000000n.*"c": \d{16}n.*"i": 5n, "r": 0\.5, "zeros": "007"/,
    );
  });

  it.each(['SELECT 1 AS "one"', 'SELECT """" || \'"""\' || "a""b"', "SELECT '\\' || \"x\""])(
    "copies the quotes of %s as Python reads them",
    (sql) => {
      const program = languages.Python({ sql, params: {}, origin: "", warehouse: "mds.sqlite" });
      const literal = /w\.sql\((.*)\)\)\n$/s.exec(program)?.[1] ?? "";
      const { stdout } = spawnSync("/usr/bin/python3", ["-c", `print(${literal}, end="")`]);
      expect(String(stdout)).toBe(sql);
    },
  );
});
