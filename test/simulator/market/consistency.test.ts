import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  DAY_MS,
  type RestClient,
  startRestClient,
  startSharedRestClient,
} from "../../support/simulator/rest-client.ts";

let caller: RestClient;
beforeAll(async () => {
  caller = await startSharedRestClient({ seed: 3 });
});
afterAll(() => caller.simulator.stop());

const MIDNIGHT = Date.UTC(2026, 2, 1);

describe("the streams agree with each other", () => {
  it("a daily bar is made of the ticks of its day", () => {
    const { oracle: truth, universe } = caller.simulator;
    const { assets, markets, liquidIndexes } = universe;
    const indexes = [
      ["GWA", assets[0]?.id],
      ["GWA", assets[3]?.id],
      ["MWA", markets.at(-1)?.id],
      ["LX", liquidIndexes[1]?.id],
    ] as const;
    for (const [type, id = ""] of indexes) {
      for (const day of [1, 2, 77, 199]) {
        const start = MIDNIGHT - day * DAY_MS;
        const ticks = truth.indexTicks(type, id, start, start + DAY_MS, caller.now);
        const [bar] = truth.dailyBars(type, id, start, start + DAY_MS, caller.now);
        expect(ticks).toHaveLength(2880);
        const prices = ticks.map(({ price }) => Number(price));
        expect(bar?.open).toBe(ticks[0]?.price);
        expect(bar?.close).toBe(ticks.at(-1)?.price);
        expect(Number(bar?.high)).toBe(Math.max(...prices));
        expect(Number(bar?.low)).toBe(Math.min(...prices));
        expect(bar?.volume).toBe(ticks.at(-1)?.volume);
        expect(Number(bar?.vwap)).toBeGreaterThanOrEqual(Number(bar?.low));
        expect(Number(bar?.vwap)).toBeLessThanOrEqual(Number(bar?.high));
      }
    }
  });

  it("today's bar is made of the ticks so far", () => {
    const { oracle: truth, universe } = caller.simulator;
    const id = universe.assets[2]?.id ?? "";
    const ticks = truth.indexTicks("GWA", id, MIDNIGHT, caller.now, caller.now);
    const [bar] = truth.dailyBars("GWA", id, MIDNIGHT, MIDNIGHT + DAY_MS, caller.now);
    expect(bar?.close).toBe(ticks.at(-1)?.price);
    expect(Number(bar?.high)).toBe(Math.max(...ticks.map(({ price }) => Number(price))));
  });

  it("MWA is the ratio of two GWA, and the dollar is one", () => {
    const { oracle: truth, universe } = caller.simulator;
    const newest = (type: "GWA" | "MWA", id: string) =>
      Number(truth.indexTicks(type, id, caller.now - 30_000, caller.now, caller.now).at(-1)?.price);
    for (const { id, base, quote } of universe.markets) {
      if (base.status === "INACTIVE" || quote.status === "INACTIVE") continue;
      expect(newest("MWA", id) / (newest("GWA", base.id) / newest("GWA", quote.id))).toBeCloseTo(1, 6);
    }
    expect(newest("GWA", universe.assets.find(({ symbol }) => symbol === "USD")?.id ?? "")).toBe(1);
  });

  it("exchange ticks stay within half a percent of the market's average when they last moved", () => {
    const { oracle: truth } = caller.simulator;
    for (const tick of truth.exchangeTicks(caller.now)) {
      const moved = Math.ceil(Date.parse(tick.lastMoved) / 30_000) * 30_000;
      const [average] = truth.indexTicks("MWA", tick.marketId, moved, moved + 1, caller.now);
      expect(Math.abs(Number(tick.last) / Number(average?.price) - 1)).toBeLessThan(0.005);
    }
  });

  it('"market cap is computed from the free-float supply and the GWA price; total market cap … from the total supply"', () => {
    const { oracle: truth } = caller.simulator;
    for (const cap of truth.marketCaps(caller.now)) {
      const at = Date.parse(cap.timestamp);
      expect(truth.indexTicks("GWA", cap.assetId, at, at + 1, caller.now)[0]?.price).toBe(cap.price);
      expect(Number(cap.marketCap)).toBeCloseTo(Number(cap.price) * Number(cap.freeFloatSupply), 1);
      expect(Number(cap.totalMarketCap)).toBeCloseTo(Number(cap.price) * Number(cap.totalSupply), 1);
    }
  });

  it("prices look like markets: the bitcoin in the tens of thousands, stablecoins near one, days of a few percent", async () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const { simulator, now } = await startRestClient({ seed });
      const bars = (symbol: string) => {
        const id = simulator.universe.assets.find((asset) => asset.symbol === symbol)?.id ?? "";
        return simulator.oracle.dailyBars("GWA", id, now - 200 * DAY_MS, now, now);
      };
      for (const { low, high } of bars("BTC")) {
        expect(Number(low)).toBeGreaterThan(10_000);
        expect(Number(high)).toBeLessThan(500_000);
      }
      for (const { low, high } of bars("USDT")) {
        expect(Number(low)).toBeGreaterThan(0.99);
        expect(Number(high)).toBeLessThan(1.01);
      }
      const moves = bars("ETH").map(({ high, low }) => Number(high) / Number(low) - 1);
      const typical = moves.toSorted((one, other) => one - other)[100] ?? 0;
      expect(typical).toBeGreaterThan(0.01);
      expect(typical).toBeLessThan(0.12);
      expect(Math.max(...moves)).toBeLessThan(0.6);
    }
  });
});
