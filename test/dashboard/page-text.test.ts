import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findParameters, languages, parseCookbook } from "../../src/dashboard/page/explore/statements.ts";
import { describeProof } from "../../src/dashboard/page/shared/proof.ts";
import { amount, brief, price, quote, title } from "../../src/dashboard/page/shared/text-format.ts";
import { duration, minuteOf } from "../../src/dashboard/page/shared/time-format.ts";
import { axis, describeCell, expand, summarize } from "../../src/dashboard/page/sync/heat-map.ts";
import type { StreamStatus } from "../../src/model/status/warehouse-status.ts";

describe("the texts of the dashboard", () => {
  it("give a length of time in one unit", () => {
    const lengths = [0, 0.4, 59, 60, 90, 3599, 3600, 5400, 86_400, 200 * 86_400];
    const texts = "0 s, 0 s, 59 s, 1 min, 1.5 min, 60 min, 1 h, 1.5 h, 1 day, 200 days";
    expect(lengths.map(duration).join(", ")).toBe(texts);
  });

  it("prove in one line what is stored, since when it is whole, and what is missing", () => {
    const none = { open: 0, open_max_seconds: 0, lost: 0, lost_max_seconds: 0 };
    const streams = [
      { stream: "ohlcv", ...none, from_time: "2014-04-01T00:00:00Z", rows: 233 },
      { stream: "index_ticks", ...none, from_time: "2026-05-01T10:41:25Z", rows: 801_000 },
      { stream: "exchange_ticks", ...none, from_time: null, rows: 0 },
    ] as readonly object[] as readonly StreamStatus[];
    const generated_at = "2026-05-03T10:00:00Z";
    const prove = (streams: readonly StreamStatus[], starts = 0) => {
      const confirmations = { starts, not_found: 0, due_at: "2026-05-03T10:06:40Z" };
      return describeProof({ streams, generated_at, confirmations }, null);
    };
    const whole =
      "801,233 rows, every second since 2026-05-01 10:42 UTC and every day since 2014-04-01 covered";
    expect(prove(streams)).toBe(`${whole}, nothing lost`);
    const lossy = streams.map((stream) =>
      stream.stream === "exchange_ticks" ? { ...stream, lost: 2, lost_max_seconds: 50 } : stream,
    );
    expect(prove(lossy)).toBe(`${whole} except 50 s of exchange ticks`);
    expect(prove(streams, 33)).toBe(
      `${whole}, nothing lost, 33 series: start of history not confirmed yet; asked again at 10:07 UTC`,
    );
    const open = streams.map((stream) => ({ ...stream, open: 4, open_max_seconds: 1800 }));
    expect(prove(open)).toBe("801,233 rows, 12 ranges still open, at most 30 min of a series, nothing lost");
    const confirmations = { starts: 0, not_found: 0, due_at: null };
    const backfill = { percent: 65, seconds_left: 600, rows_per_second: 81_000 };
    expect(describeProof({ streams: open, generated_at, confirmations }, backfill)).toBe(
      "801,233 rows, first fill 65 %, about 10 min left, 81K rows/s, nothing lost",
    );
    expect(prove([])).toBe("0 rows, nothing lost");
  });

  it("show prices with the service's digits and a real minus sign, none before what rounds to nothing", () => {
    expect(["61204.5", "1234567.123456", "0.000012345678", "7"].map(price)).toEqual([
      ...["61,204.5", "1,234,567.12", "0.00001234", "7"],
    ]);
    expect(["-1234.5", "-0.00", "-0.5"].map(price)).toEqual(["−1,234.5", "0.00", "−0.5"]);
    expect([-1234.5, -0.25].map(quote)).toEqual(["−1,234.50", "−0.25000"]);
  });

  it("format streams, counts and times", () => {
    const amounts = [4_000_000, 229_400, 12.345, 0.5, null].map(amount);
    expect(amounts).toEqual(["4.00M", "229K", "12.3", "0.5", "–"]);
    expect(["index_ticks", "ohlcv"].map(title)).toEqual(["Index ticks", "Daily bars"]);
    expect([9_999, 12_345_678].map(brief)).toEqual(["9,999", "12.3M"]);
    const times = ["2026-03-01T00:00:00.000000Z", "2026-03-01T12:34:56.000000Z", null].map(minuteOf);
    expect(times).toEqual(["2026-03-01", "2026-03-01 12:34", ""]);
  });

  it("describe a cell and a strip of the heat map", () => {
    const [none, whole, half] = [
      [0, 0, 0, 0],
      [100, 0, 0, 0],
      [50, 0, 50, 0],
    ] as const;
    expect(expand([[2, ...whole] as const, [1, ...none] as const])).toEqual([whole, whole, none]);
    expect(describeCell([97, 0, 2, 1])).toBe("97 % covered, 2 % open, 1 % lost");
    expect(describeCell(none)).toBe("not selected");
    expect(summarize([none, whole, half])).toBe("75 % covered, 25 % open");
  });

  it("label days with months and months with years, not too close to each other", () => {
    const days = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02", "2026-03-03"];
    expect(axis(days, 1)).toEqual([[0.4, "Mar"]]);
    expect(axis(["2025-12", "2026-01", "2026-02", "2026-03"], 1)).toEqual([[0.25, "2026"]]);
  });
});

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
