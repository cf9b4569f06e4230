import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const only = (intraday: string) =>
  `sync: { ohlcv: false, exchangeTickers: false, derivatives: false, intraday: { ${intraday}, days: 1 } }`;
const selectedSeries =
  "SELECT DISTINCT s.name FROM targets w JOIN series s USING (series) WHERE w.to_ts IS NULL AND is_snapshot = 0 ORDER BY 1";

describe("the selection", () => {
  it("unknown names are reported, exit 4, and the others are synced: all that have an ambiguous name, with a warning", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: [BTC, BITCON, LUNA], MWA: none, LX: none"),
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([{ stream: "index_ticks", code: "selector_unknown" }]);
    expect(report.problems[0]?.message).toContain("BITCON");
    expect(engine.query(selectedSeries)).toEqual([{ name: "BTC" }, { name: "LUNA" }]);
    engine.expectMatchesService();
    expect(engine.query("SELECT count(*) AS n FROM targets WHERE is_snapshot = 0")).toEqual([{ n: 3 }]);
    expect(engine.logged).toContainEqual(
      expect.objectContaining({ level: "warn", fields: { setting: "sync.intraday.GWA", names: ["LUNA"] } }),
    );
  });

  it("the largest assets come from the fetched ranking, or from the stored one if the fetch fails", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: { top: 2 }, MWA: { top: 1 }, LX: none"),
    });
    expect((await engine.run()).exit).toBe(0);
    const before = engine.query(selectedSeries);
    expect(before).toContainEqual({ name: "BTC" });
    expect(before).toContainEqual({ name: "BTC/USD" });
    engine.simulator.setFaults(Fault.status(403, { on: "/market-cap" }));
    await engine.clock.advance(60_000);
    const report = await engine.run();
    expect(report.problems).toMatchObject([{ stream: "market_caps", code: "forbidden" }]);
    expect(engine.query(selectedSeries)).toEqual(before);
    engine.expectMatchesService();
  });

  it("C17: a ranking that lost most of its assets deselects nothing, exit 4, and is used again once it is complete", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: { top: 3 }, MWA: none, LX: none") });
    expect((await engine.run()).exit).toBe(0);
    const before = engine.query(selectedSeries);
    expect(before).toHaveLength(3);
    engine.simulator.setFaults(Fault.shrink(0.9, { on: "/market-cap" }));
    // The second run repeats it, and the stored ranking has shrunk too.
    for (const code of ["doubtful_list", "shrunken_list"]) {
      await engine.clock.advance(600_000);
      const report = await engine.run();
      expect(report.exit).toBe(4);
      expect(report.problems).toMatchObject([{ stream: "market_caps", code }]);
      expect(engine.query(selectedSeries)).toEqual(before);
    }
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.query(selectedSeries)).toEqual(before);
    engine.expectMatchesService();
  });

  it("C17: a lookup that lost most of its entries is reported, exit 4, and deselects nothing", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: [BTC], MWA: none, LX: none") });
    expect((await engine.run()).exit).toBe(0);
    engine.simulator.setFaults(Fault.shrink(0.9, { on: "/asset" }));
    await engine.clock.advance(60_000);
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([{ stream: "assets", code: "shrunken_list" }]);
    const [{ last_error } = {}] = engine.query(
      "SELECT last_error FROM stream_states WHERE stream = 'assets'",
    );
    expect(last_error).toContain("/asset lacks");
    expect(engine.query(selectedSeries)).toEqual([{ name: "BTC" }]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
  });

  it("without any ranking the largest assets are unresolved: exit 4, and the rest is synced", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: { top: 2 }, MWA: [ETH/USD], LX: none"),
      simulator: { faults: [Fault.status(403, { on: "/market-cap" })] },
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems.map(({ code }) => code)).toContain("selector_unresolved");
    expect(engine.query(selectedSeries)).toEqual([{ name: "ETH/USD" }]);
  });

  it("a selector that resolves to nothing is unresolved: exit 4 and named everywhere, until the service lists something", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: [BTC], MWA: none, LX: all"),
      simulator: { faults: [Fault.shrink(1, { on: "/index-ticker", query: { indexType: "LX" } })] },
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([
      { stream: "index_ticks", what: "sync.intraday.LX", code: "selector_unresolved" },
    ]);
    expect(report.problems[0]?.message).toMatch(/resolves to nothing.* set this to none$/);
    const state = "SELECT last_error FROM stream_states WHERE stream = 'index_ticks'";
    expect(engine.query(state)[0]?.last_error).toMatch(/^sync.intraday.LX resolves to nothing/);
    const range = ["--stream", "index_ticks", "--from", "2026-03-01 06:00", "--to", "2026-03-01 11:00"];
    const checked = await runInProcess(["gaps", "--warehouse", engine.path, ...range]);
    expect(checked.status).toBe(4);
    expect(checked.stdout).toContain("Unknown series: sync.intraday.LX resolves to nothing");
    expect((await runInProcess(["gaps", "--warehouse", engine.path])).stdout).not.toContain(
      "Nothing is missing",
    );
    engine.simulator.setFaults();
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.query(selectedSeries)).toHaveLength(4);
    expect((await runInProcess(["gaps", "--warehouse", engine.path, ...range])).status).toBe(0);
    engine.expectMatchesService();

    // Indices that were known once stay selected if the page is empty later.
    engine.simulator.setFaults(
      Fault.shrink(1, { on: "/index-ticker", query: { indexType: "LX", size: "100" } }),
    );
    await engine.clock.advance(600_000);
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.query(selectedSeries)).toHaveLength(4);
    engine.expectMatchesService();
  });

  it("a whole lookup that is empty on the first night leaves its selectors unresolved, exit 4", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: [BTC], MWA: all, LX: none"),
      simulator: { faults: [Fault.shrink(1, { on: "/market" })] },
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([{ what: "sync.intraday.MWA", code: "selector_unresolved" }]);
  });

  it("a deselected series keeps its rows and its proof, and nothing of it is fetched", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: [BTC, ETH], MWA: none, LX: none") });
    await engine.run();
    const ofEth = () => [
      engine.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'ETH'"),
      engine.query("SELECT from_ts, to_ts, proof FROM coverage WHERE name = 'ETH'"),
    ];
    const before = ofEth();
    engine.configure(only("GWA: [BTC], MWA: none, LX: none"));
    for (let run = 0; run < 2; run++) {
      await engine.clock.advance(3_600_000);
      expect((await engine.run()).exit).toBe(0);
      expect(engine.query(selectedSeries)).toEqual([{ name: "BTC" }]);
      expect(ofEth()).toEqual(before);
      expect(engine.query("SELECT * FROM gaps WHERE name = 'ETH'")).toEqual([]);
    }
    engine.expectMatchesService();
    engine.configure(only("GWA: [BTC, ETH], MWA: none, LX: none"));
    expect((await engine.run()).exit).toBe(0);
    expect(ofEth()).not.toEqual(before);
    expect(engine.query("SELECT count(*) AS n FROM coverage WHERE name = 'ETH'")).toEqual([{ n: 1 }]);
    engine.expectMatchesService();
  });

  it("deselected snapshot streams end, and the others continue", async () => {
    const settings = (more: string) => `sync: { ohlcv: false, intraday: false, ${more} }`;
    const engine = await startBackfillHarness({
      settings: settings(
        "exchangeTickers: { exchanges: [Kraken, Coinbase], markets: [BTC/USD] }, derivatives: { exchanges: [Deribit] }",
      ),
      simulator: { size: { assets: 12, markets: 20, exchanges: 9 } },
    });
    const snapshotTargets = () =>
      engine.query(`SELECT w.stream, s.name FROM targets w JOIN series s USING (series)
        WHERE w.to_ts IS NULL AND is_snapshot = 1 ORDER BY 1, 2`);
    await engine.run();
    expect(snapshotTargets().map(({ stream, name }) => `${stream} ${name}`)).toEqual([
      "derivative_ticks Deribit",
      "exchange_ticks Coinbase",
      "exchange_ticks Kraken",
      "market_caps ",
    ]);
    engine.configure(
      settings(
        "exchangeTickers: { exchanges: [Kraken], markets: [BTC/USD] }, derivatives: false, marketCap: false",
      ),
    );
    await engine.clock.advance(60_000);
    // Even a run that is filtered to another stream ends them.
    await engine.run({ streams: ["ohlcv"] });
    expect(snapshotTargets()).toEqual([{ stream: "exchange_ticks", name: "Kraken" }]);
    engine.expectMatchesService();
  });

  it("the filter options limit what one run fills, not the targets", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: [BTC, ETH], MWA: none, LX: none") });
    const range = {
      from: Date.parse("2026-03-01T06:00:00Z") * 1000,
      to: Date.parse("2026-03-01T08:00:00Z") * 1000,
    };
    const report = await engine.run({ series: ["btc"], range });
    expect(report.exit).toBe(0);
    expect(engine.query(selectedSeries)).toEqual([{ name: "BTC" }, { name: "ETH" }]);
    expect(
      engine.query("SELECT name, from_time, to_time FROM coverage WHERE stream = 'index_ticks'"),
    ).toEqual([
      { name: "BTC", from_time: "2026-03-01T06:00:00.000000Z", to_time: "2026-03-01T08:00:00.000000Z" },
    ]);
    await expect(engine.run({ series: ["BITCON"] })).rejects.toMatchObject({ exit: 2 });
  });

  it("liquid indices get the names from the settings", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: none, MWA: none, LX: all") });
    const [blx] = engine.simulator.universe.liquidIndexes;
    engine.configure(
      `service: { lxIndexIds: { BLX: "${blx?.id}" } }\n${only("GWA: none, MWA: none, LX: [BLX]")}`,
    );
    expect((await engine.run()).exit).toBe(0);
    expect(engine.query("SELECT DISTINCT name, index_id FROM index_ticks")).toEqual([
      { name: "BLX", index_id: blx?.id },
    ]);
  });
});
