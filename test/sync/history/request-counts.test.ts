import { describe, expect, it } from "vitest";
import type { SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { type BackfillHarness, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const PAGE_ROWS = 2000;
const symbols = ["BTC", "ETH", "XRP"];

const start = (simulator: SimulatorOptions, names: readonly string[] = symbols, days = 200) =>
  startBackfillHarness({
    settings: `service: { concurrency: 8 }
sync: { ohlcv: false, exchangeTickers: false, marketCap: false, derivatives: false,
  intraday: { GWA: ${JSON.stringify(names)}, MWA: none, LX: none, days: ${days} } }`,
    simulator,
  });

/** Pages that the rows of each stored series fill, summed over the series. */
function idealPages(engine: BackfillHarness): number {
  return engine
    .query("SELECT count(*) AS rows FROM index_tick_rows GROUP BY series")
    .reduce((sum, { rows }) => sum + Math.ceil(Number(rows) / PAGE_ROWS), 0);
}

describe("requests of a backfill", () => {
  it("H9: a series of two days costs its pages and four requests", async () => {
    const engine = await start({ quirks: { listed: { perMille: 1000, on: "2026-02-27" } } });
    await engine.run();
    engine.expectMatchesService();
    const requests = engine.simulator.requests.count("/v3/index-ticker");
    expect(requests).toBeLessThanOrEqual(idealPages(engine) + 4 * symbols.length);
  });

  it.each<[string, SimulatorOptions]>([
    ["the expected cadence", {}],
    ["a cadence of 45 seconds", { refreshSeconds: 45 }],
    ["a cadence of a minute", { quirks: { everyNthTick: 2 } }],
    ["a third of the rows missing", { quirks: { missingPerMille: 333 } }],
    ["a hole of two days each week", { quirks: { closedDays: 2 } }],
  ])("H9: %s costs at most 5 percent more than the full pages", async (_, simulator) => {
    const engine = await start(simulator, ["BTC"]);
    await engine.run();
    engine.expectMatchesService();
    const requests = engine.simulator.requests.count("/v3/index-ticker");
    expect(requests).toBeLessThanOrEqual(1.05 * idealPages(engine));
  });
});
