import { describe, expect, it } from "vitest";
import { startEngine } from "./engine-under-test.ts";

const TYPES = ["futures", "perpetuals"];
const settings = `sync: { ohlcv: false, exchangeTickers: false, marketCap: false, intraday: false,
  derivatives: { exchanges: all, types: [${TYPES}] } }`;

describe("derivatives", () => {
  it("are looked for on every exchange once a day, and on those that have them each time", async () => {
    const engine = await startEngine({
      settings,
      simulator: { size: { assets: 12, markets: 20, exchanges: 9 } },
    });
    const { simulator } = engine;
    const { exchanges } = simulator.universe;
    const asked = async () => {
      simulator.requests.clear();
      const { exit } = await engine.run();
      const count = (what: string) =>
        TYPES.reduce((sum, type) => sum + simulator.requests.count(`/v3/derivatives/${what}/${type}`), 0);
      return { exit, contracts: count("contract"), tickers: count("ticker") };
    };
    const first = await asked();
    expect(first).toMatchObject({ exit: 0, contracts: 2 * exchanges.length });
    const having = "SELECT DISTINCT derivative_type, exchange_id FROM derivative_contracts";
    const supported = engine.query(having).length;
    expect(supported).toBeGreaterThan(2);
    expect(supported).toBeLessThan(first.contracts);
    expect(first.tickers).toBe(supported);

    await engine.clock.advance(3_600_000);
    expect(await asked()).toEqual({ exit: 0, contracts: supported, tickers: supported });

    // An empty list where there were contracts is no answer to rely on for a day.
    simulator.setFaults("GET /derivatives/contract/perpetuals shrink by=1");
    await asked();
    simulator.setFaults("");
    expect(await asked()).toMatchObject({ contracts: supported, tickers: supported });

    await engine.clock.advance(86_400_000);
    expect(await asked()).toEqual({ exit: 0, contracts: 2 * exchanges.length, tickers: supported });
  });

  it("that an exchange does not have are no trouble, however the service says so", async () => {
    const engine = await startEngine({
      settings,
      simulator: {
        size: { assets: 6, markets: 4, exchanges: 60 },
        faults: "GET /derivatives/contract/* status 404",
      },
    });
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.simulator.requests.count("/v3/derivatives/contract/futures")).toBe(60);
  });
});
