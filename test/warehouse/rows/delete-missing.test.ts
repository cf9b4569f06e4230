import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { withdrawMissing } from "../../../src/warehouse/rows/delete-missing.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Warehouse } from "../../../src/warehouse/writer.ts";
import { openScratch, rows } from "../../support/warehouse/open-warehouse.ts";
import { at, bar, tick } from "../../support/warehouse/records.ts";

const T = at("2026-03-01T11:00:00Z");

/** A page of `moments` that proves `[T, T + 100)`. */
function takePage(warehouse: Warehouse, moments: readonly number[]) {
  return warehouse.transaction((transaction) => {
    const ticks = moments.map((moment) => tick(T + moment, "1"));
    writeRecords(transaction, "index_ticks", ticks, "rest");
    return withdrawMissing(transaction, {
      stream: "index_ticks",
      series: 1,
      range: { from: T, to: T + 100 },
      present: ticks.map(({ ts }) => ts),
    });
  });
}

const moments = (warehouse: Warehouse) =>
  rows(warehouse, "SELECT ts FROM index_ticks ORDER BY ts").map(({ ts }) => (ts as number) - T);

const many = Array.from({ length: 40 }, (_, i) => 99 - 2 * i);

describe("a page is authoritative for the range that it proves", () => {
  it("withdraws a stored row that the page lacks into revisions", () => {
    const warehouse = openScratch();
    warehouse.transaction((t) =>
      writeRecords(t, "index_ticks", [tick(T + 50, "7"), tick(T - 1, "7"), tick(T + 100, "7")], "live"),
    );
    expect(takePage(warehouse, many)).toEqual({ withdrawn: 1, refused: 0 });
    expect(moments(warehouse)).toEqual([-1, ...[...many].reverse(), 100]);
    const [revision] = rows(warehouse, "SELECT ts, before, after FROM revisions");
    expect(revision).toMatchObject({ ts: T + 50, after: null });
    expect(JSON.parse(revision?.before as string)).toMatchObject({ price: "7", source: "live" });
    const ticks = readStatus(warehouse.connection, T).streams.find(({ stream }) => stream === "index_ticks");
    expect(ticks?.rows).toBe(42);
    expect(takePage(warehouse, many)).toEqual({ withdrawn: 0, refused: 0 });
  });

  it("refuses when more than a tenth of the page's rows would go: nothing is withdrawn", () => {
    const warehouse = openScratch();
    const bogus = Array.from({ length: 5 }, (_, i) => tick(T + 2 * i, "7"));
    warehouse.transaction((t) => writeRecords(t, "index_ticks", bogus, "rest"));
    expect(takePage(warehouse, many)).toEqual({ withdrawn: 0, refused: 5 });
    expect(moments(warehouse)).toHaveLength(45);
  });

  it("is not fooled by a page that repeats a record", () => {
    const warehouse = openScratch();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 50, "7")], "live"));
    expect(takePage(warehouse, [...many, many.at(-1) as number])).toEqual({ withdrawn: 1, refused: 0 });
  });

  it("looks beyond the rows of the page, down to where the proven range begins", () => {
    const warehouse = openScratch();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 1, "7")], "live"));
    expect(takePage(warehouse, many.slice(0, 30))).toEqual({ withdrawn: 1, refused: 0 });
  });

  it("withdraws bars by day", () => {
    const warehouse = openScratch();
    const day = at("2026-02-01T00:00:00Z");
    const days = Array.from({ length: 20 }, (_, i) => day + i * MICROS_PER_DAY);
    warehouse.transaction((t) =>
      writeRecords(
        t,
        "ohlcv",
        days.map((start) => bar(start, "1")),
        "rest",
      ),
    );
    const result = warehouse.transaction((transaction) =>
      withdrawMissing(transaction, {
        stream: "ohlcv",
        series: 1,
        range: { from: day, to: day + 20 * MICROS_PER_DAY },
        present: days.filter((start) => start !== day + MICROS_PER_DAY),
      }),
    );
    expect(result).toEqual({ withdrawn: 1, refused: 0 });
    expect(rows(warehouse, "SELECT time FROM revisions")).toEqual([{ time: "2026-02-02T00:00:00.000000Z" }]);
  });
});
