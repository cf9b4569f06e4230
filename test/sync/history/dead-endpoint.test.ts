import { describe, expect, it } from "vitest";
import type { BackfillReport } from "../../../src/sync/history/backfill.ts";
import { Fault } from "../../simulator/faults.ts";
import { onlyTicks, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const settings = `service: { refreshSeconds: 600 }
sync:
  ohlcv: { GWA: [LUNA], MWA: none, LX: none }
  intraday: { GWA: { top: 2 }, MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  derivatives: { exchanges: [Deribit], types: [perpetuals], every: 1m }
`;
const simulator = { refreshSeconds: 600 };
const MINUTE_MS = 60_000;

/** The virtual minutes of one run, and its report. */
async function runAndMeasure(engine: Awaited<ReturnType<typeof startBackfillHarness>>) {
  const startedAt = engine.clock.monotonic();
  const report = await engine.run();
  return { report, minutes: (engine.clock.monotonic() - startedAt) / MINUTE_MS };
}

const openStreams = ({ streams }: BackfillReport) =>
  streams.filter(({ open }) => open > 0).map(({ stream }) => stream);

describe("one endpoint that fails for good", () => {
  it("H8: without a ranking, everything else is fetched; the run ends with exit 4 and names the stream", async () => {
    const engine = await startBackfillHarness({
      settings,
      simulator: { ...simulator, faults: [Fault.status(500, { on: "/market-cap" })] },
    });
    const { report, minutes } = await runAndMeasure(engine);
    expect(report.exit).toBe(4);
    expect(minutes).toBeLessThan(1);
    expect(report.problems).toMatchObject([
      { stream: "market_caps", code: "endpoint_failing", message: expect.stringContaining("/market-cap") },
      { stream: "index_ticks", what: "sync.intraday.GWA", code: "selector_unresolved" },
    ]);
    expect(engine.query("SELECT DISTINCT name FROM ohlcv")).toEqual([{ name: "LUNA" }]);
    expect(engine.query("SELECT count(*) > 0 AS some FROM exchange_ticks")).toEqual([{ some: 1 }]);
    expect(engine.query("SELECT count(*) > 0 AS some FROM derivative_ticks")).toEqual([{ some: 1 }]);
    expect(engine.simulator.requests.count("/v3/market-cap")).toBeLessThan(60);

    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("H8: `top: N` falls back to the stored ranking", async () => {
    const engine = await startBackfillHarness({ settings, simulator });
    expect((await engine.run()).exit).toBe(0);
    engine.simulator.setFaults(Fault.status(500, { on: "/market-cap" }));
    await engine.clock.advance(60 * MINUTE_MS);
    const { report, minutes } = await runAndMeasure(engine);
    expect(report.exit).toBe(4);
    expect(minutes).toBeLessThan(1);
    expect(report.problems).toMatchObject([{ stream: "market_caps", code: "endpoint_failing" }]);
    expect(openStreams(report)).toEqual([]);
  });

  it("H8: a ranking that comes late is used: all that it selects is fetched in the same run", async () => {
    const engine = await startBackfillHarness({
      settings: settings.replace("markets: all", "markets: { top: 2 }"),
      simulator: { ...simulator, faults: [Fault.status(500, { on: "/market-cap", to: 10_000 })] },
    });
    const { report, minutes } = await runAndMeasure(engine);
    expect(report).toMatchObject({ exit: 0, problems: [] });
    expect(minutes).toBeLessThan(1);
    expect(engine.query("SELECT DISTINCT name FROM index_ticks ORDER BY 1")).toEqual([
      { name: "BTC" },
      { name: "ETH" },
    ]);
    expect(engine.query("SELECT count(*) > 0 AS some FROM exchange_ticks")).toEqual([{ some: 1 }]);
    engine.expectMatchesService();
  });

  it("H8: each endpoint that fails alone leaves the rest fetched, exit 4", async () => {
    const engine = await startBackfillHarness({ settings, simulator });
    // The first run stores the lookups, as on any day before the endpoint died.
    await engine.run();
    // Each run shows that the endpoint of the one before works again.
    for (const [path, stream] of [
      ["/derivatives/contract/*", "derivative_contracts"],
      ["/exchange-ticker*", "exchange_ticks"],
      ["/exchange", "exchanges"],
      ["/ohlcv", "ohlcv"],
    ]) {
      engine.simulator.setFaults(Fault.status(500, { on: path }));
      await engine.clock.advance(26 * 60 * MINUTE_MS);
      const { report, minutes } = await runAndMeasure(engine);
      const failed = [...new Set(report.problems.map((problem) => problem.stream))];
      const open = stream === "ohlcv" ? ["ohlcv"] : [];
      expect([path, report.exit, failed, openStreams(report)]).toEqual([path, 4, [stream], open]);
      expect(minutes).toBeLessThan(2);
    }
    engine.simulator.setFaults();
    await engine.clock.advance(5 * MINUTE_MS);
    expect((await engine.run()).exit).toBe(0);
  });

  it("H8: dead derivatives end the run soon, however many exchanges and types are asked", async () => {
    const engine = await startBackfillHarness({
      settings: settings.replace(
        "[Deribit], types: [perpetuals]",
        "all, types: [futures, perpetuals, options]",
      ),
      simulator: { ...simulator, faults: [Fault.status(500, { on: "/derivatives/*" })] },
    });
    const { report, minutes } = await runAndMeasure(engine);

    expect(report.exit).toBe(4);
    // An endpoint counts as dead after a minute; nobody then waits for the next probe.
    expect(minutes).toBeLessThan(1.1);
    expect(report.problems).toMatchObject([{ stream: "derivative_contracts", code: "endpoint_failing" }]);
  });

  it("H8: two dead endpoints are no dead service: the rest is fetched, exit 4", async () => {
    const engine = await startBackfillHarness({
      settings: settings.replace("GWA: [LUNA], MWA: none", "GWA: all, MWA: all").replace("top: 2", "top: 20"),
      simulator: {
        ...simulator,
        faults: [Fault.status(500, { on: "/ohlcv" }), Fault.status(500, { on: "/index-ticker" })],
      },
    });
    const { report, minutes } = await runAndMeasure(engine);
    expect(report.exit).toBe(4);
    expect(minutes).toBeLessThan(3);
    const problems = new Set(report.problems.map(({ stream, code }) => `${stream} ${code}`));
    expect(problems).toEqual(new Set(["index_ticks endpoint_failing", "ohlcv endpoint_failing"]));
    expect(engine.query("SELECT count(*) > 0 AS some FROM exchange_ticks")).toEqual([{ some: 1 }]);
    expect(engine.query("SELECT count(*) > 0 AS some FROM derivative_ticks")).toEqual([{ some: 1 }]);
  });

  it("H8: an outage of the whole service after the lookups is no dead endpoint: exit 75", async () => {
    const lookups = ["/asset", "/market", "/exchange", "/market-cap"];
    const engine = await startBackfillHarness({
      settings: onlyTicks("{ top: 2 }", { marketCap: "{ every: 5m }" }),
      simulator: {
        faults: [
          Fault.status(500, { on: "/index-ticker" }),
          Fault.status(500, { on: "/asset/*" }),
          Fault.status(500, { on: "/market/*" }),
          ...lookups.map((path) => Fault.status(500, { on: path, after: 1 })),
        ],
      },
    });
    await expect(engine.run()).rejects.toMatchObject({ exit: 75, code: "gave_up" });
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
  });

  it("H8: a page that always fails keeps only its series open; most requests to the endpoint succeed", async () => {
    const engine = await startBackfillHarness({ settings, simulator });
    const eth = engine.simulator.universe.assets.find(({ symbol }) => symbol === "ETH")?.id;
    engine.simulator.setFaults(Fault.status(500, { on: "/index-ticker", query: { indexId: eth } }));
    const { report, minutes } = await runAndMeasure(engine);
    expect(report.exit).toBe(4);
    expect(minutes).toBeLessThan(8);
    expect(report.problems).toMatchObject([{ stream: "index_ticks", what: "GWA ETH" }]);
    expect(engine.query("SELECT DISTINCT name FROM index_ticks")).toEqual([{ name: "BTC" }]);
  });
});
