import { describe, expect, it } from "vitest";
import { barWidths, MICROS_PER_DAY } from "../../../src/model/time.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { fill } from "../../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../../support/warehouse/records.ts";
import { writeTicks } from "../../support/warehouse/write-records.ts";

const T = parseTs("2026-03-01T00:00:00Z");
const HALF_MINUTE = 30_000_000;
const HOUR = barWidths["1h"];

/** A warehouse with the ticks of one series, whose target has a refresh period of 30 seconds. */
function warehouseOf(
  ticks: readonly (readonly [ts: number, price: string])[],
  settled: readonly (readonly [number, number, ("rows" | "empty" | "lost")?])[] = [],
): WarehouseWriter {
  const warehouse = openTestWarehouse({ hasAllViews: true });
  warehouse.transaction((transaction) => {
    const rows = ticks.map(([ts, price]) => ({ ts, price: decimal(price), volume: decimal("1000.5") }));
    const of = (which: string) =>
      settled.flatMap(([from, to, proof = "rows"]) => (proof === which ? [[from, to] as const] : []));
    const ranges = { settled: of("rows"), empty: of("empty"), lost: of("lost") };
    fill(transaction, { series: [{ from: T - MICROS_PER_DAY, rows, ...ranges }] });
  });
  return warehouse;
}

const every = (from: number, to: number, step = HALF_MINUTE) =>
  Array.from({ length: (to - from) / step }, (_, i) => from + i * step);

describe("a bar", () => {
  it("is complete if the ledger covers all of it, also with several proofs", () => {
    const ticks = every(T, T + HOUR).map((ts) => [ts, "5"] as const);
    const half = T + HOUR / 2;
    const whole = warehouseOf(ticks, [[T - HOUR, T + HOUR]]);
    const pieces = warehouseOf(ticks.slice(0, 60), [
      [T, half],
      [half, T + HOUR, "empty"],
    ]);
    const lost = warehouseOf(ticks.slice(0, 60), [
      [T, half],
      [half, T + HOUR, "lost"],
    ]);
    const sql = "SELECT n_ticks, coverage, is_complete, quality FROM bars_1h";
    expect(queryRows(whole, sql)).toEqual([{ n_ticks: 120, coverage: 1, is_complete: 1, quality: null }]);
    expect(queryRows(pieces, sql)).toEqual([
      { n_ticks: 60, coverage: 1, is_complete: 1, quality: "fewer ticks than expected" },
    ]);
    expect(queryRows(lost, sql)).toEqual([
      { n_ticks: 60, coverage: 0.5, is_complete: 0, quality: "not proven whole" },
    ]);
  });

  it("reports that it is in progress, or has ticks with a quality flag", () => {
    const warehouse = warehouseOf([[T, "5"]], [[T, T + HOUR]]);
    const soon = Date.now() * 1000 + HOUR;
    warehouse.transaction((transaction) => {
      const flagged = [tick(T + HALF_MINUTE, "6", { quality: "price_below_zero" })];
      writeTicks(transaction, flagged);
      writeTicks(transaction, [tick(soon, "7")], "live");
    });
    expect(queryRows(warehouse, "SELECT quality, is_complete FROM bars_1h ORDER BY ts")).toEqual([
      { quality: "doubtful ticks", is_complete: 1 },
      { quality: "in progress", is_complete: 0 },
    ]);
  });

  it("expects one tick per refresh period", () => {
    const warehouse = warehouseOf([[T, "5"]]);
    warehouse.transaction((transaction) =>
      transaction.statement("UPDATE targets SET period = 10000000").run([]),
    );
    expect(queryRows(warehouse, "SELECT expected_ticks FROM bars_5m")).toEqual([{ expected_ticks: 30 }]);
    warehouse.transaction((transaction) => transaction.statement("DELETE FROM targets").run([]));
    expect(queryRows(warehouse, "SELECT expected_ticks FROM bars_1d")).toEqual([{ expected_ticks: 2880 }]);
  });
});

describe("bars", () => {
  it("of one series and range read no other ticks", () => {
    const warehouse = warehouseOf([[T, "5"]]);
    for (const series of ["name = 'BTC' AND index_type = 'GWA'", "index_id = 'btc-id'"]) {
      const sql = `SELECT * FROM bars_1h WHERE ${series} AND ts >= ${T} AND ts < ${T + 24 * HOUR}`;
      const plan = queryRows(warehouse, `EXPLAIN QUERY PLAN ${sql}`)
        .map(({ detail }) => String(detail))
        .join("\n");
      expect(plan).toMatch(/SEARCH s USING INDEX/);
      expect(plan).not.toMatch(/SCAN [stahlzg]\b|TEMP B-TREE/);
      expect(plan).toContain("SEARCH t USING PRIMARY KEY (series=? AND ts>? AND ts<?)");
    }
  });

  it("do not read what the query does not select", () => {
    const warehouse = warehouseOf([[T, "5"]]);
    const plan = queryRows(warehouse, "EXPLAIN QUERY PLAN SELECT ts, open FROM bars_1h WHERE name = 'BTC'");
    expect(plan.map(({ detail }) => String(detail)).filter((step) => /\b[hlzg]\b/.test(step))).toEqual([]);
  });
});
