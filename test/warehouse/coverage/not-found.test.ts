import { expect, it } from "vitest";
import { NOT_FOUND } from "../../../src/rule/answer.ts";
import {
  readNotFoundSeries,
  readSettledRanges,
  reopenNotFound,
  wasNotFound,
} from "../../../src/warehouse/coverage/ledger.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";

it("a series that was not found is known by its ranges, until the service has it again", () => {
  const warehouse = openTestWarehouse();
  const ticks = { stream: "index_ticks", series: 1 } as const;
  const other = { stream: "index_ticks", series: 2 } as const;
  warehouse.transaction((t) => {
    settle(t, ticks, { from: 10, to: 40 }, "lost", NOT_FOUND);
    settle(t, ticks, { from: 40, to: 90 }, "empty", NOT_FOUND);
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
