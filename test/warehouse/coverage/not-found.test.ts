import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readSettledRanges, settle } from "../../../src/warehouse/coverage/ledger.ts";
import {
  readNotFoundSeries,
  reopenNotFound,
  settleNotFound,
  wasNotFound,
} from "../../../src/warehouse/coverage/not-found.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { bar, tick } from "../../support/warehouse/records.ts";

const ticks = { stream: "index_ticks", series: 1 } as const;
const lost = { proof: "lost", reason: "not found" };
const empty = { proof: "empty", reason: "not found" };

describe("an index that the service does not have", () => {
  it("has an empty history if no row of it is stored", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => settleNotFound(t, ticks, { from: 10, to: 90 }));
    expect(readSettledRanges(warehouse.connection, ticks)).toEqual([{ from: 10, to: 90, ...empty }]);
  });

  it("had a history up to its newest row: what is missing before it is lost", () => {
    const warehouse = openTestWarehouse();
    const rows = [5, 20, 40, 90].map((ts) => tick(ts, "1"));
    warehouse.transaction((t) => writeRecords(t, "index_ticks", rows, "rest"));
    warehouse.transaction((t) => settleNotFound(t, ticks, { from: 10, to: 90 }));
    expect(readSettledRanges(warehouse.connection, ticks)).toEqual([
      { from: 10, to: 41, ...lost },
      { from: 41, to: 90, ...empty },
    ]);
  });

  it("is all lost if the newest row ends the range", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(89, "1")], "rest"));
    warehouse.transaction((t) => settleNotFound(t, ticks, { from: 10, to: 90 }));
    expect(readSettledRanges(warehouse.connection, ticks)).toEqual([{ from: 10, to: 90, ...lost }]);
  });

  it("has lost whole days of its daily bars", () => {
    const warehouse = openTestWarehouse();
    const bars = { stream: "ohlcv", series: 1 } as const;
    const day = (count: number) => count * MICROS_PER_DAY;
    warehouse.transaction((t) => writeRecords(t, "ohlcv", [bar(day(3), "1")], "rest"));
    warehouse.transaction((t) => settleNotFound(t, bars, { from: day(1), to: day(9) }));
    expect(readSettledRanges(warehouse.connection, bars)).toEqual([
      { from: day(1), to: day(4), ...lost },
      { from: day(4), to: day(9), ...empty },
    ]);
    expect(readNotFoundSeries(warehouse.connection, "ohlcv")).toEqual(new Set([1]));
  });

  it("is known by its ranges, until the service has it again", () => {
    const warehouse = openTestWarehouse();
    const other = { stream: "index_ticks", series: 2 } as const;
    warehouse.transaction((t) => {
      writeRecords(t, "index_ticks", [tick(20, "1")], "rest");
      settleNotFound(t, ticks, { from: 10, to: 90 });
      settle(t, ticks, { from: 95, to: 99 }, "empty", "no records");
      settle(t, other, { from: 10, to: 90 }, "empty", "no records");
    });
    const { connection } = warehouse;
    expect(readNotFoundSeries(connection, "index_ticks")).toEqual(new Set([1]));
    expect(readNotFoundSeries(connection, "ohlcv")).toEqual(new Set());
    expect([ticks, other].map((key) => wasNotFound(connection, key))).toEqual([true, false]);
    for (const key of [other, ticks]) warehouse.transaction((t) => reopenNotFound(t, key));
    expect(wasNotFound(connection, ticks)).toBe(false);
    expect(readSettledRanges(connection, ticks)).toEqual([
      { from: 95, to: 99, proof: "empty", reason: "no records" },
    ]);
    expect(readSettledRanges(connection, other)).toHaveLength(1);
  });
});
