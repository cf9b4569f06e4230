import { describe, expect, it } from "vitest";
import { serviceScopes } from "../../../src/model/streams.ts";
import { StreamErrors } from "../../../src/sync/context/problem-log.ts";
import { Fault } from "../../simulator/faults.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";
import { SupervisorHarness } from "../../support/sync/supervisor-harness.ts";

const TYPES = ["futures", "perpetuals"];
const settings = `sync: { ohlcv: false, exchangeTickers: false, marketCap: false, intraday: false,
  derivatives: { exchanges: all, types: [${TYPES}] } }`;

describe("derivatives", () => {
  it("are looked up once a day on every exchange, and in every run on exchanges that have some", async () => {
    const engine = await startBackfillHarness({
      settings,
      simulator: { size: { assets: 12, markets: 20, exchanges: 9 } },
    });
    const { simulator } = engine;
    const { exchanges } = simulator.universe;
    const countRequests = async () => {
      simulator.requests.clear();
      const { exit } = await engine.run();
      const count = (what: string) =>
        TYPES.reduce((sum, type) => sum + simulator.requests.count(`/v3/derivatives/${what}/${type}`), 0);
      return { exit, contracts: count("contract"), tickers: count("ticker") };
    };
    const first = await countRequests();
    expect(first).toMatchObject({ exit: 0, contracts: 2 * exchanges.length });
    const having = "SELECT DISTINCT derivative_type, exchange_id FROM derivative_contracts";
    const supported = engine.query(having).length;
    expect(supported).toBeGreaterThan(2);
    expect(supported).toBeLessThan(first.contracts);
    expect(first.tickers).toBe(supported);

    await engine.clock.advance(3_600_000);
    expect(await countRequests()).toEqual({ exit: 0, contracts: supported, tickers: supported });

    // An empty list where there were contracts must not be cached for a day.
    simulator.setFaults(Fault.shrink(1, { on: "/derivatives/contract/perpetuals" }));
    await countRequests();
    simulator.setFaults();
    expect(await countRequests()).toMatchObject({ contracts: supported, tickers: supported });

    await engine.clock.advance(86_400_000);
    expect(await countRequests()).toEqual({ exit: 0, contracts: 2 * exchanges.length, tickers: supported });
  });

  it("cause no problem on an exchange that has none, even with a 404", async () => {
    const engine = await startBackfillHarness({
      settings,
      simulator: {
        size: { assets: 6, markets: 4, exchanges: 20 },
        faults: [Fault.status(404, { on: "/derivatives/contract/*" })],
      },
    });
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.simulator.requests.count("/v3/derivatives/contract/futures")).toBe(20);
  });

  it("without the scope are reported once for all exchanges, and fetched once the scope is granted", async () => {
    const harness = await SupervisorHarness.start({
      sync: { derivatives: { exchanges: { kind: "all" }, types: ["futures", "perpetuals"], every: 60 } },
      simulator: {
        scopes: serviceScopes.filter((scope) => scope !== "read:derivatives"),
        size: { assets: 6, markets: 8, exchanges: 9 },
      },
    });
    await harness.advance(900);
    expect(harness.reportedParts.filter((part) => part.startsWith("derivative"))).toEqual([
      "derivative contracts",
    ]);
    expect(harness.logged.length).toBeLessThan(10);
    // Probed every minute, because the ticks of the meantime are lost.
    expect(harness.requestsTo("/derivatives/contract/futures").length).toBeLessThan(17);
    const streamErrors = new StreamErrors();
    for (const [part, problems] of harness.problems) streamErrors.setProblems(part, problems);
    const state = streamErrors.takeChanges([])?.find(({ stream }) => stream === "derivative_contracts");
    expect(state?.error).toContain("read:derivatives");

    harness.simulator.grantScopes(serviceScopes);
    await harness.runUntil(
      () => harness.query("SELECT 1 FROM derivative_ticks LIMIT 1").length === 1,
      20 * 60,
      60,
    );
    await harness.advance(120);
    expect([...harness.problems.values()].flat()).toEqual([]);
  });

  it("of an exchange are polled as soon as its contracts are found, then once a period", async () => {
    const harness = await SupervisorHarness.start({
      sync: {
        derivatives: { exchanges: { kind: "list", names: ["Kraken"] }, types: ["perpetuals"], every: 600 },
      },
    });
    const polls = () => harness.requestsTo("/derivatives/ticker/perpetuals").length;
    await harness.advance(10);
    expect(polls()).toBe(1);
    await harness.advance(3600);
    expect(polls()).toBe(7);
  });

  const threeTypes = { types: ["futures", "perpetuals", "options"], every: 60 };
  const typesStored = "SELECT DISTINCT derivative_type AS type FROM derivative_ticks ORDER BY 1";

  it("A11: of a type that is denied do not stop the other types; the period is lost, reason forbidden", async () => {
    const harness = await SupervisorHarness.start({
      sync: { derivatives: { exchanges: { kind: "list", names: ["Deribit", "Kraken"] }, ...threeTypes } },
      simulator: {
        faults: ["contract", "ticker"].map((what) =>
          Fault.status(403, { on: `/derivatives/${what}/options`, to: 10 * 60_000 }),
        ),
      },
    });
    await harness.advance(8 * 60);
    expect(harness.query(typesStored)).toEqual([{ type: "futures" }, { type: "perpetuals" }]);
    const deribit = "name = 'Deribit' AND state = 'lost'";
    const lost = harness.readGaps(deribit);
    expect(lost).toMatchObject([{ stream: "derivative_ticks", reason: "forbidden" }]);
    expect(lost[0]?.seconds).toBeGreaterThanOrEqual(5 * 60);
    const problems = [...harness.problems.values()].flat();
    expect(problems.map(({ stream, code }) => `${stream} ${code}`)).toEqual([
      "derivative_contracts forbidden",
      "derivative_ticks forbidden",
    ]);
    expect(problems[1]?.message).toContain("/derivatives/ticker/options");
    // Access returns after ten minutes: the next minute's probe notices it.
    await harness.advance(5 * 60);
    expect(harness.query(typesStored)).toContainEqual({ type: "options" });
    await harness.advance(10 * 60);
    expect([...harness.problems.values()].flat()).toEqual([]);
    expect(harness.readGaps(`${deribit} AND age < 540`)).toEqual([]);
  });

  it("A11: of a denied type leave a backfill with exit 4 that names it, and the others fetched", async () => {
    const engine = await startBackfillHarness({
      settings: `sync: { ohlcv: false, exchangeTickers: false, marketCap: false, intraday: false,
        derivatives: { exchanges: [Deribit] } }`,
      simulator: { faults: [Fault.status(403, { on: "/derivatives/ticker/options" })] },
    });
    const { exit, problems } = await engine.run();
    expect(exit).toBe(4);
    expect(problems).toMatchObject([
      { stream: "derivative_ticks", code: "forbidden", message: expect.stringContaining("/ticker/options") },
    ]);
    expect(engine.query(typesStored)).toEqual([{ type: "futures" }, { type: "perpetuals" }]);
    expect(engine.query("SELECT proof, reason FROM coverage")).toEqual([
      { proof: "lost", reason: "forbidden" },
    ]);
  });
});
