import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDecimal, toPlainNotation } from "../../../src/model/decimal.ts";
import { formatTimestamp } from "../../../src/model/time.ts";
import { hasTool } from "../../support/has-tool.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const decimalText = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.stringMatching(/^(0|[1-9][0-9]{0,17})$/),
    fc.oneof(fc.stringMatching(/^[0-9]{0,20}$/), fc.stringMatching(/^0{0,8}[0-9]{0,15}$/)),
  )
  .map(([sign, whole, fraction]) => `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}`);

const borders = Array.from({ length: 24 }, (_, i) => i - 8).flatMap((power) => [
  `1e${power}`,
  `9.99999999999999e${power}`,
  `1.00000000000001e${power}`,
  `-1e${power}`,
  `5e${power}`,
]);

describe("exact columns", () => {
  it("return the exact digits of thousands of decimals, whatever a double holds, in the installed SQLite too", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const texts = [
      ...fc.sample(decimalText, 6000),
      ...borders,
      "0",
      "-0",
      "0.000",
      "1e-18",
      "1E+5",
      "-12.50",
    ];
    const ticks = texts.map((text, i) => tick(i, text));
    storeTicks(warehouse, ticks);
    const stored = queryRows(warehouse, "SELECT ts, price, price_exact FROM index_ticks ORDER BY ts");
    expect(stored.map(({ price_exact }) => price_exact)).toEqual(texts.map((text) => toPlainNotation(text)));
    expect(stored.map(({ price }) => price)).toEqual(
      texts.map((text) => (parseDecimal(text)?.real ?? 0) + 0),
    );
    const [details] = queryRows(warehouse, "SELECT count(details) AS n FROM index_tick_rows");
    expect(details?.n).toBe(texts.filter((text) => decimal(text).exact !== null).length);
    if (!hasTool("sqlite3", "exact columns in another SQLite version")) return;
    const sql = "SELECT price_exact FROM index_ticks ORDER BY ts";
    const printed = execFileSync("sqlite3", ["-readonly", warehouse.path, sql], { encoding: "utf8" });
    expect(printed.trimEnd().split("\n")).toEqual(texts.map((text) => toPlainNotation(text)));
  });

  it("are null if the value is null", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    storeTicks(warehouse, [tick(1, "1", { price: null, quality: "price: NaN" })]);
    expect(queryRows(warehouse, "SELECT price, price_exact, quality FROM index_ticks")).toEqual([
      { price: null, price_exact: null, quality: "price: NaN" },
    ]);
  });
});

describe("time columns", () => {
  it("show the timestamp as 27 characters, also before 1970", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const timestamps = [...new Set(fc.sample(fc.integer({ min: -1e15, max: 4e15 }), 2000))];
    const all = [...timestamps, 0, -1, 1, 999_999, -999_999, -1_000_000];
    const ticks = all.map((ts) => tick(ts, "1"));
    storeTicks(warehouse, ticks);
    for (const { ts, time } of queryRows(warehouse, "SELECT ts, time FROM index_ticks")) {
      expect(time).toBe(formatTimestamp(ts as number));
    }
  });
});
