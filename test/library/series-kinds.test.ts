import { describe, expect, it } from "vitest";
import type { Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { EXACT_BID, fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";
import { withWarehouse } from "../support/library/with-warehouse.ts";
import { createWarehouse } from "../support/warehouse/filled-warehouse.ts";
import { catchFailure } from "../support/warehouse/open-warehouse.ts";

const names = ["Kraken:BTC/USD", "Kraken:BTCUSD-PERP", "cap:BTC"] as const;
const minute = (n: number) => formatTimestamp(SNAPSHOTS_FROM + n * MINUTE);
const whole = { from: minute(0), to: minute(5) };

const read = <T>(work: (warehouse: Warehouse) => T): T => withWarehouse(createWarehouse(fillSnapshots), work);

const ofService = { every: "1d", source: "ohlcv" } as const;

describe("a name addresses any stream of ticks", () => {
  it.each([
    ["Kraken:BTC/USD", undefined, 100, 109],
    ["kraken:btc/usd", undefined, 100, 109],
    ["kraken-id:btc-usd-id", "ask", 102, 111],
    ["Kraken:BTC/USD", "last", 100, 109],
    ["Kraken:BTC/USD", "price", 100, 109],
    ["Kraken:BTC/USD", "volume", 7, 7],
    ["Kraken:BTCUSD-PERP", undefined, 200, 209],
    ["Kraken:BTCUSD-PERP", "funding", 0.001, 0.0019],
    ["Kraken:BTCUSD-PERP", "funding_rate", 0.001, 0.0019],
    ["Kraken:BTCUSD-PERP", "open_interest", 5000, 5009],
    ["cap:BTC", undefined, 9e9, 9e9 + 9],
    ["CAP:bitcoin", "price", 300, 309],
    ["cap:BTC", "rank", 1, 1],
    ["GWA:BTC", "last", 400, 409],
    ["BTC", "volume", 1000.5, 1000.5],
  ])("%s of %s: ticks, columns, bars, asof and asof_join agree", (name, of, open, close) => {
    read((warehouse) => {
      const figure = of === undefined ? {} : { of };
      const ticks = warehouse.ticks(name, figure);
      expect([ticks.length, ticks[0]?.price, ticks.at(-1)?.price]).toEqual([9, open, close]);
      const prices = ticks.map(({ price }) => price);
      const [columns] = warehouse.ticks(name, { ...figure, as: "columns" });
      expect([...(columns?.price ?? [])]).toEqual(prices);
      expect(warehouse.bars(name, { ...figure, every: "1h" })).toMatchObject([{ open, close, n_ticks: 9 }]);
      expect(warehouse.asOf(minute(5), name, figure)).toMatchObject([{ price: prices[4], age_seconds: 60 }]);
      const joined = warehouse.asOfJoin([{ time: minute(5), name }], figure);
      expect(joined).toMatchObject([{ asof_price: prices[4], asof_age_seconds: 60 }]);
    });
  });

  it("reads every digit, and computes the middle of a quote", () => {
    read((warehouse) => {
      const first = { to: minute(1) };
      expect(warehouse.ticks(names[0], { ...first, of: "bid" })[0]?.price_exact).toBe(EXACT_BID);
      expect(warehouse.bars(names[0], { ...first, every: "1m", of: "bid" })[0]?.high_exact).toBe(EXACT_BID);
      expect(warehouse.asOf(minute(0), names[0], { of: "bid" })[0]?.price_exact).toBe(EXACT_BID);
      const [middle] = warehouse.ticks(names[0], { from: minute(1), of: "mid" });
      expect(middle).toMatchObject({ price: 101.5, price_exact: "101.5" });
    });
  });

  it.each([...names])("the ledger proves what it has of %s, and names what it lacks", (name) => {
    read((warehouse) => {
      const every = "1m";
      expect(warehouse.isWhole(name, whole)).toBe(true);
      expect(warehouse.bars(name, { ...whole, every, requireComplete: true })).toHaveLength(5);
      expect(warehouse.ticks(name, whole).every((row) => row.is_settled === 1)).toBe(true);
      const around = { from: minute(3), to: minute(6) };
      expect(warehouse.isWhole(name, around)).toBe(false);
      const bars = warehouse.bars(name, { ...around, every: "3m" });
      expect(bars).toMatchObject([{ is_complete: 0, coverage: 2 / 3, expected_ticks: 3, n_ticks: 2 }]);
      const lacking = { from_time: minute(5), to_time: minute(6), state: "lost", reason: "not observed" };
      expect(warehouse.gaps({ series: name, ...around })).toMatchObject([lacking]);
      const failure = catchFailure(() => warehouse.ticks(name, { ...around, requireComplete: true }));
      expect(failure).toMatchObject({ code: "not_whole", gaps: [lacking] });
      expect(warehouse.asOf([minute(4), minute(5)], name).map((row) => row.is_complete)).toEqual([1, 0]);
      const covered = warehouse.coverage({ series: name });
      expect(covered[0]?.from_time).toBe(minute(0));
      expect(covered.map(({ to_time }) => to_time)).toEqual(expect.arrayContaining([minute(5), minute(10)]));
    });
  });

  it("lists them all, with the first and the last tick", () => {
    read((warehouse) => {
      const of = (index_type: string, index_id: string, name: string) => ({
        ...{ index_type, index_id, name, has_ticks: 1, has_ohlcv: 0, first: minute(0), last: minute(9) },
      });
      expect(warehouse.series()).toEqual([
        of("GWA", "btc-id", "BTC"),
        of("derivative_ticks", "kraken-id:perp-id", "Kraken:BTCUSD-PERP"),
        of("exchange_ticks", "kraken-id:btc-usd-id", "Kraken:BTC/USD"),
        of("market_caps", "cap:btc-id", "cap:BTC"),
      ]);
    });
  });

  it.each([
    [["Krakn:BTC/USD"], {}, "the warehouse has no series Krakn:BTC/USD: did you mean Kraken:BTC/USD?"],
    [["cap:BCT"], {}, "the warehouse has no series cap:BCT: did you mean cap:BTC?"],
    [["btcusd-perp"], {}, "the warehouse has no series btcusd-perp: did you mean Kraken:BTCUSD-PERP?"],
    [["BCT"], {}, "the warehouse has no series BCT: did you mean BTC?"],
    [["Kraken"], {}, "Kraken is an exchange: give one of its markets too, such as Kraken:BTC/USD"],
    [["Kraken:BTC/USD"], { of: "funding" }, /^Kraken:BTC\/USD has no figure funding: give one of last, /],
    [["BTC", "cap:BTC"], { of: "volme" }, "BTC has no figure volme: did you mean volume?"],
    [["cap:BTC"], ofService, "cap:BTC has no daily bars of market_cap: leave out --source"],
  ] as const)("%j with %j is refused in one line", (series, options, line) => {
    read((warehouse) => {
      const failure = catchFailure(() => warehouse.bars(series, { every: "1h", ...options }));
      if (typeof line === "string") expect(failure.summary).toBe(line);
      else expect(failure.summary).toMatch(line);
    });
  });

  it("is the same in the commands, beside indices", async () => {
    const path = createWarehouse(fillSnapshots);
    const run = (...args: string[]) => runInProcess([...args, "--warehouse", path]);
    const { stdout } = await run(
      ...["bars", "BTC", ...names, "--every", "5m", "--wide", "--format", "csv"],
      ...["--from", minute(0), "--to", minute(10)],
    );
    const [head, first] = stdout.split("\r\n");
    expect(head).toBe(`ts,time,BTC,${names.join(",")},is_complete`);
    expect(first).toBe(`${SNAPSHOTS_FROM},${minute(0)},404,104,204,9000000004,1`);
    const bids = await run("ticks", names[0], "--of", "bid", "--columns", "price_exact", "--format", "csv");
    expect(bids.stdout.split("\r\n").slice(0, 3)).toEqual(["price_exact", EXACT_BID, "100"]);
    const asof = await run("asof", minute(3), names[1], "--of", "funding", "--json");
    expect(JSON.parse(asof.stdout)).toMatchObject([{ name: names[1], price: 0.0013, is_complete: 1 }]);
    const range = ["--from", minute(4), "--to", minute(7)];
    const lacking = await run("ticks", "cap:BTC", ...range, "--require-complete");
    expect(lacking).toMatchObject({
      status: 4,
      stdout: "",
      stderr: expect.stringMatching(/^market_caps: \[.* lost: not observed\nmds-sync: not complete: /),
    });
    const completion = (await run("completion", "series")).stdout.split("\n");
    expect(completion).toEqual(expect.arrayContaining([...names]));
    const gaps = await run("gaps", "--series", names[0], ...range, "--json");
    expect(JSON.parse(gaps.stdout)).toMatchObject([{ stream: "exchange_ticks", name: "Kraken" }]);
    const proven = await run("gaps", "--series", names[0], "--from", minute(0), "--to", minute(5));
    expect(proven.status).toBe(0);
  });
});
