import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { publicDocs } from "../../../src/warehouse/schema/column-docs.ts";
import { views } from "../../../src/warehouse/views/views.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import { python, skipWithout } from "../../support/has-tool.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { parseTs, tick } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { writeTicks } from "../../support/warehouse/write-records.ts";

const SERIES = 10;
const ROWS = 500;
const STEP = 30_000_000;
const T = parseTs("2026-03-01T00:00:00Z");

let warehouse: WarehouseWriter;

beforeAll(() => {
  warehouse = openWriter(join(temporaryFolder(afterAll), "mds.sqlite"), { clock: new ManualClock() });
  for (let series = 0; series < SERIES; series++) {
    const indexId = `id-${series}`;
    const ticks = Array.from({ length: ROWS }, (_, i) => tick(T - i * STEP, "1.5", { indexId }));
    warehouse.transaction((transaction) => {
      writeTicks(transaction, ticks);
      const key = { stream: "index_ticks", series: series + 1 } as const;
      settle(transaction, key, { from: T - ROWS * STEP, to: T }, "rows");
    });
  }
});
afterAll(() => warehouse.close());

const all = (sql: string) => warehouse.connection.database.prepare(sql).all() as Record<string, unknown>[];
const plan = (sql: string) => all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail as string);

describe("the relations of the contract", () => {
  it("have the documented type in every column, for tools that read the schema", () => {
    // SQLite names the type of an expression by its affinity.
    const aliases: Record<string, string> = { INT: "INTEGER", NUM: "INTEGER" };
    for (const [relation, { columns }] of Object.entries(publicDocs)) {
      const types = all(`SELECT name, type FROM pragma_table_info('${relation}')`).map(({ name, type }) => [
        name,
        aliases[type as string] ?? type,
      ]);
      const documented = columns.map(({ name, type }) => [name, type]);
      expect(types, relation).toEqual(expect.arrayContaining(documented));
    }
  });

  it("are SQL that DuckDB's parser accepts", async () => {
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    for (const [name, sql] of Object.entries(views)) {
      const reader = await connection.runAndReadAll(`SELECT json_serialize_sql($sql$${sql}$sql$::VARCHAR)`);
      expect(JSON.parse(String(reader.getRows()[0]?.[0])), name).toMatchObject({ error: false });
    }
    connection.closeSync();
    instance.closeSync();
  });
});

describe("index_tick_spans", () => {
  it("has the first and the last tick of each series, and reads no other", () => {
    const sql = "SELECT min(first_ts) AS first, max(last_ts) AS last, count(*) AS n FROM index_tick_spans";
    expect(all(sql)).toEqual([{ first: T - (ROWS - 1) * STEP, last: T, n: SERIES }]);
    expect(plan(sql).join()).not.toMatch(/SCAN [anz]\b|TEMP B-TREE/);
  });
});

describe("index seeks", () => {
  const seek = "SEARCH r USING PRIMARY KEY (series=? AND ts";

  it.each([
    ["a week of one series by name", `name = 'id-7' AND ts >= ${T - 20_000 * STEP} AND ts < ${T}`],
    ["a cross-section at one timestamp", `ts = ${T - 100 * STEP}`],
    ["one series by id", `index_type = 'GWA' AND index_id = 'id-7' AND ts > ${T - 50 * STEP}`],
  ])("%s", (_name, where) => {
    const steps = plan(`SELECT name, time, price_exact, is_settled FROM index_ticks WHERE ${where}`);
    expect(steps.filter((step) => step.includes(" r "))).toEqual([expect.stringContaining(seek)]);
    expect(steps.join()).not.toContain("SCAN r");
  });

  it.each([
    ["a day of one series", "name = 'id-7' AND day = '2026-02-28'", "=?"],
    ["a range of days", "name = 'id-7' AND day >= '2026-02-27' AND day < '2026-03-01'", ">? AND <expr><?"],
    ["a cross-section of a day", "day = '2026-02-28'", "=?"],
    ["all days since one", "day >= date('now', '-7 days')", ">?"],
  ])("of ohlcv: %s", (_name, where, bound) => {
    const steps = plan(`SELECT name, day, time, close_exact, is_final FROM ohlcv WHERE ${where}`);
    expect(steps).toContain(`SEARCH r USING INDEX daily_bars_by_day (series=? AND <expr>${bound})`);
  });

  it("find the newest row of each series without reading the others", () => {
    const steps = plan("SELECT name, price FROM latest_index_ticks");
    expect(steps.some((step) => step.includes(seek))).toBe(true);
    expect(steps.join()).toContain("SEARCH n USING PRIMARY KEY (series=? AND ts<?)");
    expect(steps.join()).not.toMatch(/SCAN [rn]\b|TEMP B-TREE/);
    const newest = "SELECT count(*) AS n, min(ts) AS ts FROM latest_index_ticks";
    expect(all(newest)).toEqual([{ n: SERIES, ts: T }]);
  });

  it("find the value as of a timestamp with one seek per series", () => {
    const sql = `SELECT s.name, (SELECT t.price FROM index_ticks t WHERE t.index_type = s.index_type
      AND t.index_id = s.index_id AND t.ts <= ${T - 77} ORDER BY t.ts DESC LIMIT 1) AS price FROM series s`;
    expect(plan(sql).join()).not.toMatch(/SCAN r|TEMP B-TREE/);
    expect(all(sql)).toHaveLength(SERIES);
  });
});

// Before 3.41 SQLite mistakes the directions of the tables after a LEFT JOIN that it omits.
describe("the order of time in a view", () => {
  it("is right in an older SQLite, by every key and name, up and down, sorted and with lag()", async () => {
    if (!existsSync(python)) {
      skipWithout(`${python} is not installed`, "the order of every view in Debian's SQLite");
      return;
    }
    const { path } = await fillDemoWarehouse(temporaryFolder());
    const script = join(import.meta.dirname, "check-orders.py");
    const { stdout } = await promisify(execFile)(python, [script, path], { maxBuffer: 2 ** 24 });
    const { tried, wrong } = JSON.parse(stdout) as { tried: Record<string, number>; wrong: string[] };
    expect(wrong).toEqual([]);
    const timeless = ["derivative_contracts", "markets", "shared_names"];
    expect(Object.keys(tried).concat(timeless).sort()).toEqual(Object.keys(views).sort());
  });
});
