import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { IncompleteFailure, openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { fillTicks, getStart, MINUTE } from "../support/library/ticks-warehouse.ts";
import { createWarehouse, DAY, HOUR, midnight } from "../support/warehouse/filled-warehouse.ts";
import { catchFailure } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const start = getStart();
let path: string;
let warehouse: Warehouse;
beforeAll(() => {
  path = createWarehouse(fillTicks, { hasAllViews: true, atEnd: afterAll });
  warehouse = openWarehouse(path);
});
afterAll(() => warehouse.close());

describe("openWarehouse", () => {
  it("refuses a Node that the native module would crash", () => {
    const { versions } = process;
    onTestFinished(() => void Object.defineProperty(process, "versions", { value: versions }));
    for (const node of ["20.20.2", "22.11.0"]) {
      Object.defineProperty(process, "versions", { value: { ...versions, node } });
      expect(catchFailure(() => openWarehouse("mds.sqlite")).summary).toBe(
        `Node ${node} is too old: use Node 22.12 or newer`,
      );
    }
  });
});

describe("names of series", () => {
  it.each([
    ["BTC", "GWA"],
    ["btc", "GWA"],
    ["Bitcoin", "GWA"],
    ["btc-id", "GWA"],
    ["gwa:BTC", "GWA"],
    ["BTC/USD", "MWA"],
    ["MWA:btc/usd", "MWA"],
  ])("%s is a series of type %s", (name, type) => {
    expect(warehouse.asOf("now", name)).toMatchObject([{ index_type: type }]);
  });

  it.each([
    ["BCT", {}, "the warehouse has no series BCT: did you mean BTC?"],
    ["LX:BTC", {}, "the warehouse has no series LX:BTC: did you mean GWA:BTC?"],
    ["BTC", { indexType: "MWA" }, "the warehouse has no series BTC: did you mean GWA:BTC?"],
    ["BTC", { indexType: "XYZ" }, "there is no index type XYZ: give one of GWA, MWA, LX"],
    [
      "UNI",
      {},
      "UNI is the name of 2 series: give GWA:uni-1 (Uniswap, active, no rows) or GWA:uni-2 (Unicorn, active, no rows)",
    ],
    ["", {}, "the warehouse has no series : give the id, symbol, pair or name of one that the service lists"],
  ])("%j with %j is an error", (name, options, message) => {
    expect(catchFailure(() => warehouse.ticks(name, options)).summary).toBe(message);
  });

  it("that two series with rows share tells its choices, and takes them", () => {
    const twice = createWarehouse((transaction) => {
      fillTicks(transaction);
      const year = 365 * DAY;
      writeTicks(transaction, [tick(start, "1", { indexId: "uni-1" })]);
      writeTicks(transaction, [tick(start - 2 * year, "2", { indexId: "uni-2" })]);
    });
    using reader = openWarehouse(twice);
    const day = (ts: number) => new Date(ts / 1000).toISOString().slice(0, 10);
    const [later, earlier] = [day(start), day(start - 730 * DAY)];
    const [first, second] = [`UNI@${later.slice(0, 4)}`, `UNI@${earlier.slice(0, 4)}`];
    expect(catchFailure(() => reader.ticks("UNI")).summary).toBe(
      `UNI is the name of 2 series: give ${first} (Uniswap, active, ${later} to ${later}) or ${second} (Unicorn, active, ${earlier} to ${earlier})`,
    );
    for (const [name, id] of [
      [first, "uni-1"],
      [second, "uni-2"],
      ["Unicorn", "uni-2"],
    ] as const) {
      expect(reader.ticks(name)).toMatchObject([{ index_id: id }]);
      expect(
        reader.gaps({ series: name, stream: "index_ticks" }).every(({ index_id }) => index_id === id),
      ).toBe(true);
    }
  });

  it("lists the series with rows", () => {
    expect(warehouse.series()).toMatchObject([
      { name: "BTC", index_type: "GWA", has_ticks: 1, has_ohlcv: 0 },
      { name: "BTC/USD", index_type: "MWA", has_ticks: 0, has_ohlcv: 1 },
    ]);
  });
});

describe("rows", () => {
  it("of ticks equal the view, to the last digit", () => {
    const view = warehouse.query("SELECT * FROM index_ticks WHERE name = 'BTC' ORDER BY ts");
    const rows = warehouse.ticks("BTC");
    expect(rows).toHaveLength(180);
    expect(rows).toEqual(view);
    expect(rows[1]?.price_exact).toBe("123456789.123456789012");
    expect(rows[4]).toMatchObject({ price_exact: "0.00000001234", volume: null, volume_exact: null });
  });

  it.each(["1m", "5m", "15m", "1h", "4h", "1d"])("of %s bars equal the view", (every) => {
    const view = warehouse.query(
      `SELECT *, 'ticks' AS source FROM bars_${every} WHERE name = 'BTC' ORDER BY ts`,
    );
    // Bars of any length have no day; the view of daily ones does.
    expect(warehouse.bars("BTC", { every })).toEqual(view.map(({ day: _, ...bar }) => bar));
  });

  it.each([
    ["7m", 7 * MINUTE],
    ["2h", 2 * HOUR],
  ])("of %s bars, which no view has, equal a plain calculation", (every, length) => {
    const groups = Map.groupBy(warehouse.ticks("BTC"), ({ ts }) => ts - (ts % length));
    const expected = [...groups].map(([ts, own]) => {
      const prices = own.map(({ price }) => price ?? Number.NaN);
      const [open, close] = [own[0]?.price_exact, own.at(-1)?.price_exact];
      const [high, low] = [Math.max(...prices), Math.min(...prices)];
      return { ts, open_exact: open, high, low, close_exact: close, n_ticks: own.length };
    });
    expect(warehouse.bars("BTC", { every })).toMatchObject(expected);
  });

  it("come as columns with the same numbers", () => {
    const rows = warehouse.ticks("BTC");
    const [columns] = warehouse.ticks("BTC", { as: "columns", columns: ["price", "volume"] });
    expect(columns?.length).toBe(180);
    expect([...(columns?.ts ?? [])]).toEqual(rows.map(({ ts }) => BigInt(ts)));
    expect([...(columns?.price ?? [])]).toEqual(rows.map(({ price }) => price));
    expect([...(columns?.volume ?? [])]).toEqual(rows.map(({ volume }) => volume ?? Number.NaN));
    expect(columns?.tick_volume).toHaveLength(0);
    const [bare] = warehouse.ticks("BTC", { as: "columns", columns: [] });
    expect(bare).toMatchObject({ length: 180, ts: columns?.ts });
    const bars = warehouse.bars("BTC", { every: "10m" });
    const [barColumns] = warehouse.bars("BTC", { every: "10m", as: "columns" });
    expect([...(barColumns?.close ?? [])]).toEqual(bars.map(({ close }) => close));
    expect([...(barColumns?.is_complete ?? [])]).toEqual(bars.map(({ is_complete }) => is_complete));
  });

  it("keep to the range [from, to), however it is given", () => {
    const [from, to] = [start + 10 * MINUTE, start + 12 * MINUTE];
    for (const range of [
      { from, to },
      { from: BigInt(from), to: BigInt(to) },
      { from: new Date(from / 1000), to: new Date(to / 1000) },
      { from: new Date(from / 1000).toISOString(), to: new Date(to / 1000).toISOString() },
    ])
      expect(warehouse.ticks("BTC", range).map(({ ts }) => ts)).toEqual([from, from + MINUTE]);
    expect(warehouse.ticks("BTC", { from: "-30s" })).toEqual([]);
    expect(() => warehouse.ticks("BTC", { from: Math.floor(from / 1000) })).toThrow(/is not a time/);
    expect(() => warehouse.ticks("BTC", { from, to: from })).toThrow(/the range is empty/);
  });
});

describe("series with daily bars only", () => {
  const week = { from: midnight - 20 * DAY, to: midnight - 16 * DAY };

  it("give bars of days and multiples of them", () => {
    const days = warehouse.bars("BTC/USD", { every: "1d", ...week });
    expect(days.map(({ close_exact }) => close_exact)).toEqual(["20.25", "19.25", "18.25", "17.25"]);
    const ofService = { source: "ohlcv", n_ticks: 1, expected_ticks: 1, is_complete: 1, quality: null };
    expect(days[0]).toMatchObject(ofService);
    const two = warehouse.bars("BTC/USD", { every: "2d", from: 0 }).filter(({ n_ticks }) => n_ticks === 2);
    for (const { ts, high, close } of two) {
      const own = days.filter((day) => day.ts >= ts && day.ts < ts + 2 * DAY);
      expect([high, close]).toEqual([Math.max(...own.map((day) => day.high)), own.at(-1)?.close]);
    }
    expect(two.length).toBeGreaterThan(0);
  });

  it("have no bars of hours, nor of the days of another time zone", () => {
    const message = "BTC/USD has daily bars only, whose days are those of UTC";
    expect(() => warehouse.bars("BTC/USD", { every: "1h" })).toThrow(message);
    expect(() => warehouse.bars("BTC/USD", { every: "1d", tz: "Europe/Berlin" })).toThrow(message);
  });

  it("do not keep others from having bars of hours, and a warning names them", async () => {
    const warned = once(process, "warning");
    const both = warehouse.bars(["BTC", "BTC/USD"], { every: "1h" });
    expect(both).toEqual(warehouse.bars("BTC", { every: "1h" }));
    expect(both.length).toBeGreaterThan(0);
    expect(String(await warned)).toContain("the warehouse has no ticks of BTC/USD, only daily bars");
    const whole = { every: "1h", requireComplete: true };
    expect(() => warehouse.bars(["BTC", "BTC/USD"], whole)).toThrow("BTC/USD");
  });

  it("are worth the close of the last day that was over", () => {
    const [row] = warehouse.asOf(midnight - 17 * DAY + HOUR, "BTC/USD");
    expect(row).toMatchObject({ price: 18.25, ts: midnight - 17 * DAY, age_seconds: 3600 });
    expect(row).toMatchObject({ is_complete: 1, source: "ohlcv" });
  });
});

describe("completeness", () => {
  it("of a price as of a moment is proven only if the ledger covers the time since", () => {
    const at = (ts: number) => warehouse.asOf(ts, "BTC")[0];
    expect(at(start + 30 * MINUTE + 1)).toMatchObject({ ts: start + 30 * MINUTE, is_complete: 1 });
    expect(at(start + 90 * MINUTE)).toMatchObject({ ts: start + 90 * MINUTE, is_complete: 0 });
    expect(at(start - 1)).toMatchObject({ ts: null, price: null, is_complete: 0 });
  });

  it("is required on request, and the failure lists what is missing", () => {
    const whole = { from: start, to: start + HOUR };
    expect(warehouse.bars("BTC", { every: "30m", ...whole, requireComplete: true })).toHaveLength(2);
    expect(warehouse.isWhole("BTC", whole)).toBe(true);
    const range = { from: start, to: start + 3 * HOUR };
    expect(warehouse.isWhole("BTC", range)).toBe(false);
    const failure = catchFailure(() => warehouse.ticks("BTC", { ...range, requireComplete: true }));
    expect(failure).toBeInstanceOf(IncompleteFailure);
    expect(failure).toMatchObject({ exit: 4, code: "not_whole" });
    expect(failure instanceof IncompleteFailure && failure.gaps).toMatchObject([
      { name: "BTC", from_ts: start + HOUR, to_ts: start + 2 * HOUR, state: "open", reason: "pending" },
    ]);
    expect(warehouse.gaps({ series: "BTC", stream: "index_ticks", ...range })).toHaveLength(1);
  });

  it("counts bars whole: a range that ends within a bar needs all of it", () => {
    const range = { from: start, to: start + 50 * MINUTE, requireComplete: true };
    expect(warehouse.bars("BTC", { every: "30m", ...range })).toHaveLength(2);
    expect(() => warehouse.bars("BTC", { every: "40m", ...range })).toThrow(IncompleteFailure);
  });

  it("fails for a series without a ledger", () => {
    const failure = catchFailure(() => warehouse.ticks("ETH", { requireComplete: true }));
    expect(failure).toMatchObject({ exit: 4, message: "not complete: ETH: the ledger has nothing" });
  });

  it("is listed as the ledger has it", () => {
    expect(warehouse.coverage({ stream: "index_ticks", from: start + 30 * MINUTE })).toMatchObject([
      { name: "BTC", from_ts: start + 30 * MINUTE, to_ts: start + HOUR, proof: "rows" },
      { name: "BTC", from_ts: start + 2 * HOUR, to_ts: start + 3 * HOUR, proof: "rows" },
    ]);
    expect(() => warehouse.coverage({ stream: "assets" })).toThrow("the ledger has no stream assets");
  });
});

describe("the connection", () => {
  it("cannot change the file", () => {
    expect(() => warehouse.query("DELETE FROM assets")).toThrow("the warehouse is read-only");
  });

  it("closes at the end of its scope", () => {
    let kept: Warehouse;
    {
      using scoped = openWarehouse(path);
      kept = scoped;
    }
    expect(() => kept.series()).toThrow(/not open/);
  });
});

it("columns of ticks have the timestamps of the rows, also of days apart", () => {
  const seconds = [0, 30, 90, 5 * 86_400 + 7.5, 5 * 86_400 + 8, 9 * 86_400];
  const times = seconds.map((second) => start + second * 1_000_000);
  const path = createWarehouse((transaction) => {
    const ticks = times.map((ts, i) => tick(ts, `${i + 1}`, i === 3 ? { price: null } : {}));
    writeTicks(transaction, ticks);
  });
  using irregular = openWarehouse(path);
  const [columns] = irregular.ticks("btc-id", { as: "columns" });
  expect([...(columns?.ts ?? [])].map(Number)).toEqual(times);
  expect([...(columns?.price ?? [])]).toEqual([1, 2, 3, Number.NaN, 5, 6]);
});
