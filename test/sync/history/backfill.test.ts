import { describe, expect, it } from "vitest";
import {
  onlyTicks,
  smallSyncSettings,
  startBackfillHarness,
  wholeHistories,
} from "../../support/sync/backfill-harness.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe("a backfill", () => {
  it("fills an empty warehouse with everything the service has, covers it, and fetches almost nothing when run again", async () => {
    const engine = await startBackfillHarness({
      settings: smallSyncSettings.replace("days: 2", "days: 1"),
      simulator: { quirks: wholeHistories },
    });
    const report = await engine.run();
    expect(report.problems).toEqual([]);
    expect(report.exit).toBe(0);
    const comparison = engine.expectMatchesService();
    expect(comparison.seriesCount).toBe(9);
    expect(comparison.rows).toBeGreaterThan(8_000);
    expect(report.streams.map(({ stream, open }) => [stream, open])).toEqual([
      ["assets", 0],
      ["markets", 0],
      ["exchanges", 0],
      ["ohlcv", 0],
      ["index_ticks", 0],
      ["exchange_ticks", 0],
      ["market_caps", 0],
    ]);

    const bars = (day: string) =>
      engine.query(`SELECT close_exact FROM ohlcv WHERE day = '${day}' AND name = 'SOL/USD'`);
    const [provisional] = bars("2026-03-01");
    expect(provisional).toBeDefined();
    const before = engine.query("SELECT count(*) AS rows FROM index_ticks");
    engine.simulator.requests.clear();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.simulator.requests.count("/v3/ohlcv")).toBe(0);
    expect(engine.simulator.requests.count("/v3/index-ticker")).toBeLessThanOrEqual(1);
    expect(engine.query("SELECT count(*) AS rows FROM index_ticks")).toEqual(before);
    expect(engine.query("SELECT * FROM revisions")).toEqual([]);

    await engine.clock.advance(6 * HOUR);
    engine.simulator.requests.clear();
    await engine.run();
    const series = engine.query(
      "SELECT count(*) AS n FROM targets WHERE stream = 'index_ticks' AND to_ts IS NULL",
    );
    // One page per series with new data, and one to find the liquid indices.
    expect(engine.simulator.requests.count("/v3/index-ticker")).toBeLessThanOrEqual(Number(series[0]?.n) + 1);
    expect(engine.simulator.requests.count("/v3/ohlcv")).toBe(0);

    // Today's bar is provisional, and is replaced when the day is over.
    await engine.clock.advance(DAY - 6 * HOUR);
    await engine.run();
    expect(bars("2026-03-01")).not.toEqual([provisional]);
    expect(bars("2026-03-02")).toHaveLength(1);
    engine.expectMatchesService();
    expect(engine.query("SELECT * FROM revisions WHERE stream = 'ohlcv'")).toEqual([]);
  });

  it("stores snapshots exactly as the service serves them", async () => {
    const engine = await startBackfillHarness({
      simulator: { quirks: { exchangeTickerPage: 3 } },
      settings: "sync: { ohlcv: false, intraday: false, exchangeTickers: { markets: all } }",
    });
    await engine.run();
    const now = engine.clock.now();
    const { oracle, universe } = engine.simulator;
    const ticks = engine.query("SELECT exchange_id, market_id, last_exact FROM exchange_ticks ORDER BY 1, 2");
    const served = oracle.exchangeTicks(now).map(({ exchangeId, marketId, last }) => ({
      exchange_id: exchangeId,
      market_id: marketId,
      last_exact: last.replace(/\.?0+$/, ""),
    }));
    const byIds = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
    expect(ticks.sort(byIds)).toEqual(served.sort(byIds));
    expect(engine.query("SELECT asset_id, rank FROM market_caps ORDER BY rank")).toEqual(
      oracle
        .marketCaps(now)
        .map(({ assetId, marketCapRank }) => ({ asset_id: assetId, rank: marketCapRank })),
    );
    const contracts = universe.exchanges.flatMap(({ id }) =>
      (["futures", "perpetuals", "options"] as const).flatMap((type) =>
        oracle
          .contracts(type, id, "ALL", now)
          .map((contract) => ({ derivative_type: type, id: contract.id })),
      ),
    );
    expect(contracts.length).toBeGreaterThan(0);
    expect(engine.query("SELECT derivative_type, id FROM derivative_contracts").sort(byIds)).toEqual(
      contracts.sort(byIds),
    );
    expect(
      engine.query("SELECT DISTINCT stream, proof FROM coverage WHERE index_type IS NULL ORDER BY 1"),
    ).toEqual([
      { stream: "derivative_ticks", proof: "rows" },
      { stream: "exchange_ticks", proof: "rows" },
      { stream: "market_caps", proof: "rows" },
    ]);
  });

  it("finds late corrections and late rows on the next day, and requests them once", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[BTC]", { days: "2" }),
      simulator: {
        quirks: { late: { perMille: 20, seconds: 72_000 }, corrections: { perMille: 20, minutes: 1_200 } },
      },
    });
    await engine.run();
    await engine.clock.advance(DAY);
    const report = await engine.run();
    const ticks = report.streams.find(({ stream }) => stream === "index_ticks");
    expect(ticks?.changed).toBeGreaterThan(0);
    expect(engine.query("SELECT count(*) > 0 AS some FROM revisions WHERE stream = 'index_ticks'")).toEqual([
      { some: 1 },
    ]);
    // Records change for at most twenty hours, so older rows must equal the service.
    const settled = engine.clock.now() - 21 * HOUR;
    const btc = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id ?? "";
    const [first] = engine.query("SELECT min(from_ts) AS ts FROM targets WHERE stream = 'index_ticks'");
    const stored = engine.query(
      `SELECT count(*) AS n FROM index_ticks WHERE index_type = 'GWA' AND name = 'BTC'
        AND ts >= ${Number(first?.ts)} AND ts < ${settled * 1000}`,
    );
    const served = engine.simulator.oracle.indexTicks(
      "GWA",
      btc,
      Number(first?.ts) / 1000,
      settled,
      engine.clock.now(),
    );
    expect(stored[0]?.n).toBe(served.length);

    engine.simulator.requests.clear();
    await engine.run();
    expect(engine.simulator.requests.count("/v3/ohlcv")).toBe(0);
    expect(engine.simulator.requests.count("/v3/index-ticker")).toBeLessThanOrEqual(1);
  });
});
