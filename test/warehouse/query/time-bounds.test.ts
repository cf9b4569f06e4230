import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../../src/model/time.ts";
import { runReadQuery } from "../../../src/warehouse/query/query.ts";
import { rewriteTimeBounds } from "../../../src/warehouse/query/time-bounds.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const DAY = "2026-03-01";
const midnight = parseTs(`${DAY}T00:00:00Z`);
const SECOND = 1_000_000;

const rewrite = (sql: string, parameters: Record<string, unknown> = {}) =>
  rewriteTimeBounds(sql, { parameters, evaluate: () => "2026-03-01 00:00:00" });
const where = (condition: string, parameters?: Record<string, unknown>) =>
  rewrite(`SELECT price FROM index_ticks WHERE ${condition}`, parameters).split(" WHERE ")[1];

describe("a bound on time", () => {
  it("takes the value of a parameter", () => {
    expect(where("time >= :from AND price > :p", { from: DAY, p: 1 })).toBe(
      `("index_ticks".ts >= ${midnight}) AND price > :p`,
    );
    expect(where("time >= :from", { from: 17n })).toBe("time >= :from");
  });

  it.each([
    "time || 'x' >= '2026-03-01'",
    "time >= '2026-03-01' || ''",
    "time >= '2026-03-01' COLLATE NOCASE",
    "substr(time, 1, 10) = '2026-03-01'",
    "'x' || time > '2026-03-01'",
    "time >= (SELECT min(first_time) FROM index_tick_spans)",
    "time >= '9999-12-31'",
    "time <> '2026-03-01'",
    "time LIKE '%03-01'",
    "time LIKE '2026-03-01t%'",
    "time IN ('2026-03-01')",
    "\"time >= '2026-03-01'\" = 1",
  ])("stays in %s", (condition) => {
    expect(where(condition)).toBe(condition);
  });
});

describe("the relation of a bound", () => {
  const bound = "time >= '2026-03-01'";

  it.each([
    `SELECT 1 FROM coverage WHERE ${bound}`,
    `SELECT 1 FROM (SELECT 'x' AS time, 1 AS ts) WHERE ${bound}`,
    `SELECT 1 FROM (SELECT 'x' AS time, 1 AS ts) t, index_ticks i WHERE t.${bound}`,
    `WITH index_ticks AS (SELECT 'x' AS time, 1 AS ts) SELECT 1 FROM index_ticks WHERE ${bound}`,
    `WITH index_ticks(time, ts) AS NOT MATERIALIZED (VALUES ('x', 1)) SELECT 1 FROM index_ticks WHERE ${bound}`,
    `SELECT substr(time, 1, 4) AS time FROM index_ticks GROUP BY 1 HAVING ${bound}`,
    `SELECT 1 FROM other.index_ticks WHERE ${bound}`,
    `SELECT 1 FROM my_view t, index_ticks i WHERE t.${bound}`,
    "SELECT 'time >= ''2026-03-01''' FROM index_ticks",
  ])("stays in %s", (sql) => {
    expect(rewrite(sql)).toBe(sql);
  });
});

describe("a query", () => {
  it("gives the same rows as without the rewriting, and reads only the range", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const times = Array.from(
      { length: 300 },
      (_, i) => midnight - 75 * 30 * SECOND + i * 15 * SECOND + (i % 3),
    );
    storeTicks(
      warehouse,
      times.map((ts, i) => tick(ts, `${100 + i}`)),
    );
    const values = [
      ...times.slice(138, 168).map(formatTimestamp),
      DAY,
      `${DAY} 00:10`,
      `${DAY}T00:05`,
      "",
      "x",
    ];
    const operators = ["<", "<=", ">", ">=", "=", "=="];
    for (const [n, value] of values.entries()) {
      const operator = operators[n % operators.length];
      for (const relation of ["index_ticks", "bars_1m"]) {
        const sql = `SELECT ts FROM ${relation} t WHERE NOT t.time ${operator} '${value}' OR time = '${value}' ORDER BY ts`;
        const plain = queryRows(warehouse, sql).map(({ ts }) => Number(ts));
        const quick = [...runReadQuery(warehouse.connection, sql).rows].map(([ts]) => Number(ts));
        expect([sql, quick]).toEqual([sql, plain]);
      }
    }
    const sql = `SELECT price FROM index_ticks WHERE name = 'btc-id' AND time >= '${DAY}' AND time < '2026-03-02'`;
    const plan = queryRows(warehouse, `EXPLAIN QUERY PLAN ${rewrite(sql)}`).map(({ detail }) => detail);
    expect(plan).toContainEqual(expect.stringMatching(/SEARCH r .*series=\? AND ts>\? AND ts<\?/));
  });

  it("falls back to the statement as given if the rewritten one is not valid", () => {
    const { connection } = openTestWarehouse({ hasAllViews: true });
    const sql = "SELECT i.ts FROM (SELECT * FROM index_ticks) i, index_ticks i WHERE i.time > '2026-03-01'";
    expect(() => [...runReadQuery(connection, sql).rows]).toThrow(/ambiguous/);
    expect([
      ...runReadQuery(connection, "SELECT count(*) FROM index_ticks WHERE time > '2026'").rows,
    ]).toEqual([[0n]]);
  });
});
