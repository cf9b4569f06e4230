import { tableFromIPC } from "@uwdata/flechette";
import { expect, it } from "vitest";
import { openWarehouse, toArrow } from "../../src/library/open-warehouse.ts";
import { MINUTE } from "../support/library/ticks-warehouse.ts";
import { commitTo, createWarehouse, HOUR, nowTs } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const COUNT = 9_000;
const first = Math.floor(nowTs / HOUR) * HOUR - (COUNT - 120) * MINUTE;
const priceAt = (at: number) => `${100 + (at % 17)}.25`;

/** Ticks every minute, also of the next hour: the test may run while an hour ends. */
const fill = () =>
  createWarehouse((transaction) => {
    const ticks = Array.from({ length: COUNT }, (_, at) =>
      tick(first + at * MINUTE, priceAt(at), { indexId: "btc-id" }),
    );
    writeTicks(transaction, ticks);
  });

it("iterates over ticks and bars of one state, whatever is committed meanwhile", async () => {
  const path = fill();
  using warehouse = openWarehouse(path);
  const [series = ""] = warehouse.series().map(({ index_id }) => index_id);
  const ticks = warehouse.ticks(series);
  const token = warehouse.cite();
  const bars = warehouse.bars(series, { every: "1m", knownAt: token });
  const found: unknown[] = [];
  for await (const row of warehouse.iterTicks(series)) {
    if (found.push(row) !== 1) continue;
    const changed = [first + 8_000 * MINUTE, first + 30_000_000].map((ts) =>
      tick(ts, "7", { indexId: "btc-id" }),
    );
    commitTo(path, (transaction) => writeTicks(transaction, changed));
  }
  expect(found).toEqual(ticks);
  expect(found).toHaveLength(COUNT);
  expect(warehouse.ticks(series)).toHaveLength(COUNT + 1);
  const again: unknown[] = [];
  for await (const bar of warehouse.iterBars(series, { every: "1m", knownAt: token })) again.push(bar);
  expect(again).toEqual(bars);
  const days: unknown[] = [];
  const options = { every: "1d", tz: "America/New_York", running: true };
  for await (const bar of warehouse.iterBars(series, options)) days.push(bar);
  expect(days).toEqual(warehouse.bars(series, options));
});

it("reads the bar that is not over only if it is told to", () => {
  using warehouse = openWarehouse(fill());
  const [series = ""] = warehouse.series().map(({ index_id }) => index_id);
  // The token says which hour is the present one.
  const knownAt = warehouse.cite();
  const hour = Math.floor((Date.parse(knownAt.split("@")[0] ?? "") * 1000) / HOUR) * HOUR;
  const range = { every: "1h", from: hour - 2 * HOUR, to: hour + HOUR, knownAt };
  const read = (running?: boolean) =>
    warehouse.bars(series, { ...range, ...(running !== undefined && { running }) });
  const over = [hour - 2 * HOUR, hour - HOUR];
  expect(read().map(({ ts }) => ts)).toEqual(over);
  expect(read(false)).toEqual(read());
  expect(read(true).map(({ ts }) => ts)).toEqual([...over, hour]);
  expect(read(true).at(-1)).toMatchObject({ quality: "in progress", is_complete: 0, n_ticks: 60 });
});

it("hands columns over as Arrow", () => {
  using warehouse = openWarehouse(fill());
  const [series = ""] = warehouse.series().map(({ index_id }) => index_id);
  const [ticks] = warehouse.ticks(series, { as: "columns" });
  const [none] = warehouse.ticks(series, { as: "columns", from: "2001-01-01", to: "2001-01-02" });
  const [bars] = warehouse.bars(series, { every: "1h", as: "columns" });
  if (!ticks || !none || !bars) throw new Error("no columns");
  const table = tableFromIPC(toArrow(ticks), { useBigInt: true, useDate: false });
  expect(table.names).toEqual(["ts", "price"]);
  expect(table.getChild("price").toArray()).toEqual(ticks.price);
  expect(table.getChild("ts").at(5)).toBe((first + 5 * MINUTE) / 1000);
  expect(table.schema.fields[0]?.type).toMatchObject({ unit: 2, timezone: "UTC" });
  expect(Object.fromEntries(table.schema.metadata ?? [])).toMatchObject({
    index_id: "btc-id",
    name: ticks.name,
  });
  expect(tableFromIPC(toArrow(none)).numRows).toBe(0);
  const hours = tableFromIPC(toArrow(bars));
  expect(hours.numRows).toBe(bars.length);
  expect(hours.getChild("is_complete").toArray()).toEqual(bars.is_complete);
});
