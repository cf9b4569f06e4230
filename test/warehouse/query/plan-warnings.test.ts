import { describe, expect, it } from "vitest";
import { findPlanWarnings } from "../../../src/warehouse/query/plan-warnings.ts";
import { fillEveryState } from "../../support/dashboard/heatmap-content.ts";
import { openFilledWarehouse } from "../../support/warehouse/filled-warehouse.ts";

describe("the warnings about a query plan", () => {
  const whole = "reads the whole table index_tick_rows: bound `ts` and name the series";
  const series = "reads every row of the selected series in index_tick_rows: bound `ts`";
  const cases: [string, string[]][] = [
    ["SELECT count(*) FROM index_ticks", [whole]],
    ["SELECT sum(price) FROM index_tick_rows", ["reads the whole table index_tick_rows: bound `ts`"]],
    ["SELECT price FROM index_ticks t WHERE t.index_type = 'GWA' AND t.name = 'BTC'", [series]],
    ["SELECT price FROM index_ticks WHERE index_type = 'GWA' AND name = 'BTC' AND ts > 5", []],
    ["SELECT price FROM index_ticks WHERE ts BETWEEN 1 AND 5", []],
    ["SELECT * FROM latest_index_ticks", []],
    ["SELECT * FROM index_tick_spans", []],
    ["SELECT close FROM bars_1h WHERE name = 'BTC'", []],
    ["SELECT * FROM assets ORDER BY name", []],
    [
      "SELECT price FROM index_ticks WHERE name = 'BTC' AND time > '2026'",
      [series, "compares `time` as text, row by row: `ts` is the key"],
    ],
    ["SELECT close FROM ohlcv", ["reads the whole table daily_bar_rows: bound `ts` and name the series"]],
  ];

  it("name the table that is read as a whole, and the column to bound", () => {
    const { connection } = openFilledWarehouse(fillEveryState);
    const found = cases.map(([sql]) => [sql, findPlanWarnings(connection, sql, {})]);
    expect(found).toEqual(cases);
  });
});
