import { describe, expect, it } from "vitest";
import { allScopes } from "../../../src/simulator/rest/tokens.ts";
import { StreamNotes } from "../../../src/sync/context/problem-log.ts";
import { startEngine } from "../../support/sync/backfill-harness.ts";
import { KeeperUnderTest } from "../../support/sync/supervisor-harness.ts";

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

  it("that the profile does not allow are told once, however many exchanges and minutes there are, and come when it does", async () => {
    const under = await KeeperUnderTest.start({
      sync: {
        ...{ ohlcv: false, intraday: false, exchangeTickers: false, marketCap: false },
        derivatives: { exchanges: { kind: "all" }, types: ["futures", "perpetuals"], every: 60 },
      },
      simulator: {
        scopes: allScopes.filter((scope) => scope !== "read:derivatives"),
        size: { assets: 6, markets: 8, exchanges: 60 },
      },
    });
    await under.pass(1800);
    expect(under.told.filter((part) => part.startsWith("derivative"))).toEqual(["derivative contracts"]);
    expect(under.failures).toEqual([]);
    expect(under.logged.length).toBeLessThan(10);
    expect(under.asked("/derivatives/contract/futures").length).toBeLessThan(3);
    const notes = new StreamNotes();
    for (const [part, problems] of under.problems) notes.report(part, problems);
    const note = notes.take([])?.find(({ stream }) => stream === "derivative_contracts");
    expect(note?.error).toContain("read:derivatives");

    under.simulator.grantScopes(allScopes);
    await under.until(
      () => under.query("SELECT 1 FROM derivative_ticks LIMIT 1").length === 1,
      2 * 3600,
      300,
    );
    expect([...under.problems.values()].flat()).toEqual([]);
  });
});
