import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { withdrawMissing } from "../../../src/warehouse/rows/withdraw-missing.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, parseTs, tick } from "../../support/warehouse/records.ts";

const T = parseTs("2026-03-01T11:00:00Z");

/** Commits a page with ticks at `T + offset` and the proven range `[T, T + 100)`. */
function commitPage(warehouse: WarehouseWriter, offsets: readonly number[]) {
  return warehouse.transaction((transaction) => {
    const ticks = offsets.map((offset) => tick(T + offset, "1"));
    writeRecords(transaction, "index_ticks", ticks, "rest");
    return withdrawMissing(transaction, {
      stream: "index_ticks",
      series: 1,
      range: { from: T, to: T + 100 },
      timestamps: ticks.map(({ ts }) => ts),
    });
  });
}

const storedOffsets = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT ts FROM index_ticks ORDER BY ts").map(({ ts }) => (ts as number) - T);

const pageOffsets = Array.from({ length: 40 }, (_, i) => 99 - 2 * i);

describe("a page is authoritative for the range that it proves", () => {
  it("withdraws a stored row that the page lacks, and stores it in revisions", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) =>
      writeRecords(t, "index_ticks", [tick(T + 50, "7"), tick(T - 1, "7"), tick(T + 100, "7")], "live"),
    );
    expect(commitPage(warehouse, pageOffsets)).toEqual({ withdrawn: 1, refused: 0 });
    expect(storedOffsets(warehouse)).toEqual([-1, ...[...pageOffsets].reverse(), 100]);
    const [revision] = queryRows(warehouse, "SELECT ts, before, after FROM revisions");
    expect(revision).toMatchObject({ ts: T + 50, after: null });
    expect(JSON.parse(revision?.before as string)).toMatchObject({ price: "7", source: "live" });
    const ticks = readStatus(warehouse.connection, T).streams.find(({ stream }) => stream === "index_ticks");
    expect(ticks?.rows).toBe(42);
    expect(commitPage(warehouse, pageOffsets)).toEqual({ withdrawn: 0, refused: 0 });
  });

  it("withdraws nothing if that would be more than a tenth of the page's rows", () => {
    const warehouse = openTestWarehouse();
    const bogus = Array.from({ length: 5 }, (_, i) => tick(T + 2 * i, "7"));
    warehouse.transaction((t) => writeRecords(t, "index_ticks", bogus, "rest"));
    expect(commitPage(warehouse, pageOffsets)).toEqual({ withdrawn: 0, refused: 5 });
    expect(storedOffsets(warehouse)).toHaveLength(45);
  });

  it("handles a page that repeats a record", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 50, "7")], "live"));
    expect(commitPage(warehouse, [...pageOffsets, pageOffsets.at(-1) as number])).toEqual({
      withdrawn: 1,
      refused: 0,
    });
  });

  it("withdraws rows older than the oldest row of the page, down to the start of the proven range", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 1, "7")], "live"));
    expect(commitPage(warehouse, pageOffsets.slice(0, 30))).toEqual({ withdrawn: 1, refused: 0 });
  });

  it("withdraws bars by day", () => {
    const warehouse = openTestWarehouse();
    const day = parseTs("2026-02-01T00:00:00Z");
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
        timestamps: days.filter((start) => start !== day + MICROS_PER_DAY),
      }),
    );
    expect(result).toEqual({ withdrawn: 1, refused: 0 });
    expect(queryRows(warehouse, "SELECT time FROM revisions")).toEqual([
      { time: "2026-02-02T00:00:00.000000Z" },
    ]);
  });
});
