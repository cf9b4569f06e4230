import { describe, expect, it } from "vitest";
import { DAY_MS, startRestClient, startSharedRestClient } from "../../support/simulator/rest-client.ts";

const client = await startSharedRestClient({ seed: 3 });

const MIDNIGHT = Date.UTC(2026, 2, 1);

describe("the streams agree with each other", () => {
  it("a daily bar summarises the ticks of its day", () => {
    const { oracle, universe } = client.simulator;
    const { assets, markets, liquidIndexes } = universe;
    const indexes = [
      ["GWA", assets[0]?.id],
      ["GWA", assets[3]?.id],
      ["MWA", markets.at(-1)?.id],
      ["LX", liquidIndexes[1]?.id],
    ] as const;
    for (const [type, id = ""] of indexes) {
      for (const day of [1, 199]) {
        const start = MIDNIGHT - day * DAY_MS;
        const ticks = oracle.indexTicks(type, id, start, start + DAY_MS, client.now);
        const [bar] = oracle.dailyBars(type, id, start, start + DAY_MS, client.now);
        expect(ticks).toHaveLength(2880);
        const prices = ticks.map(({ price }) => Number(price));
        expect(bar?.open).toBe(ticks[0]?.price);
        expect(bar?.close).toBe(ticks.at(-1)?.price);
        expect(Number(bar?.high)).toBe(Math.max(...prices));
        expect(Number(bar?.low)).toBe(Math.min(...prices));
        expect(bar?.volume).toBe(ticks.at(-1)?.volume);
        for (const average of [Number(bar?.vwap), Number(bar?.twap)]) {
          expect(average).toBeGreaterThanOrEqual(Number(bar?.low));
          expect(average).toBeLessThanOrEqual(Number(bar?.high));
        }
      }
    }
  });

  it.each([
    ["missing", { missingPerMille: 400 }],
    ["late", { late: { perMille: 300, seconds: 7200 } }],
    ["corrected", { corrections: { perMille: 200, minutes: 600 } }],
    ["on open days only", { closedDays: 2 }],
  ])("a daily bar claims no extreme that no tick has: ticks are %s", async (_, quirks) => {
    const { simulator, now } = await startRestClient({ quirks });
    const { oracle, universe } = simulator;
    const indexes = [
      ["GWA", universe.assets[1]?.id],
      ["MWA", universe.markets[2]?.id],
      ["LX", universe.liquidIndexes[0]?.id],
    ] as const;
    for (const [type, id = ""] of indexes) {
      for (let day = 0; day < 4; day++) {
        const start = MIDNIGHT - day * DAY_MS;
        const ticks = oracle.indexTicks(type, id, start, start + DAY_MS, now);
        const [bar] = oracle.dailyBars(type, id, start, start + DAY_MS, now);
        const prices = ticks.map(({ price }) => Number(price));
        expect(bar?.open).toBe(ticks[0]?.price);
        expect(bar?.close).toBe(ticks.at(-1)?.price);
        if (bar) expect(Number(bar.high)).toBe(Math.max(...prices));
        if (bar) expect(Number(bar.low)).toBe(Math.min(...prices));
      }
    }
  });

  it("today's bar summarises the ticks so far", () => {
    const { oracle, universe } = client.simulator;
    const id = universe.assets[2]?.id ?? "";
    const ticks = oracle.indexTicks("GWA", id, MIDNIGHT, client.now + 1, client.now);
    const [bar] = oracle.dailyBars("GWA", id, MIDNIGHT, MIDNIGHT + DAY_MS, client.now);
    const prices = ticks.map(({ price }) => Number(price));
    expect(bar?.close).toBe(ticks.at(-1)?.price);
    expect(Number(bar?.high)).toBe(Math.max(...prices));
  });

  it("MWA is the ratio of two GWA, and USD is 1", () => {
    const { oracle, universe } = client.simulator;
    const newest = (type: "GWA" | "MWA", id: string) =>
      Number(oracle.indexTicks(type, id, client.now - 30_000, client.now, client.now).at(-1)?.price);
    for (const { id, base, quote } of universe.markets) {
      if (base.status === "INACTIVE" || quote.status === "INACTIVE") continue;
      expect(newest("MWA", id) / (newest("GWA", base.id) / newest("GWA", quote.id))).toBeCloseTo(1, 6);
    }
    expect(newest("GWA", universe.assets.find(({ symbol }) => symbol === "USD")?.id ?? "")).toBe(1);
  });

  it("open interest is a number of contracts, and in USD what they are worth", () => {
    const { oracle, universe } = client.simulator;
    const usdPrice = (symbol: string) => {
      const id = universe.assets.find((asset) => asset.symbol === symbol)?.id ?? "";
      return Number(
        oracle.indexTicks("GWA", id, client.now - 30_000, client.now + 1, client.now).at(-1)?.price,
      );
    };
    const seen = new Set<string>();
    for (const type of ["futures", "perpetuals", "options"] as const)
      for (const exchange of universe.exchanges) {
        const contracts = oracle.contracts(type, exchange.id, "ACTIVE", client.now);
        for (const tick of oracle.derivativeTicks(type, exchange.id, client.now)) {
          const contract = contracts.find(({ id }) => id === tick.contractId);
          const value = Number(contract?.contractValue) * usdPrice(contract?.valueCurrency ?? "");
          expect(Number(tick.openInterestUsd) / (Number(tick.openInterest) * value)).toBeCloseTo(1, 6);
          seen.add(`${contract?.contractValue} ${contract?.valueCurrency}`);
        }
      }
    expect([...seen]).toEqual(expect.arrayContaining(["1 BTC", "100 USD"]));
  });

  it("exchange ticks stay within 0.5 % of the market average at their last trade", () => {
    const { oracle } = client.simulator;
    for (const tick of oracle.exchangeTicks(client.now)) {
      const moved = Math.ceil(Date.parse(tick.lastMoved) / 30_000) * 30_000;
      const [average] = oracle.indexTicks("MWA", tick.marketId, moved, moved + 1, client.now);
      expect(Math.abs(Number(tick.last) / Number(average?.price) - 1)).toBeLessThan(0.005);
    }
  });

  it('"market cap is computed from the free-float supply and the GWA price; total market cap … from the total supply"', () => {
    const { oracle } = client.simulator;
    for (const cap of oracle.marketCaps(client.now)) {
      const at = Date.parse(cap.timestamp);
      expect(oracle.indexTicks("GWA", cap.assetId, at, at + 1, client.now)[0]?.price).toBe(cap.price);
      expect(Number(cap.marketCap)).toBeCloseTo(Number(cap.price) * Number(cap.freeFloatSupply), 1);
      expect(Number(cap.totalMarketCap)).toBeCloseTo(Number(cap.price) * Number(cap.totalSupply), 1);
    }
  });

  it("prices are plausible: bitcoin in the tens of thousands, stablecoins near 1, daily changes of a few percent", async () => {
    for (const seed of [1, 2]) {
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
