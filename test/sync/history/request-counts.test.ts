import { describe, expect, it } from "vitest";
import type { SimulatorOptions } from "../../simulator/simulator.ts";
import {
  type BackfillHarness,
  barsOf,
  onlyTicks,
  startBackfillHarness,
  wholeHistories,
} from "../../support/sync/backfill-harness.ts";

const PAGE_ROWS = 2000;
const names = ["BTC", "ETH", "XRP"];
/** At noon of 2026-03-01 every index has records of two and a half days. */
const young = { listed: { perMille: 1000, on: "2026-02-27" } };

const start = (simulator: SimulatorOptions, series: readonly string[] = names, days = 200) =>
  startBackfillHarness({
    settings: `service: { concurrency: 8 }\n${onlyTicks(`[${series}]`, { days: `${days}` })}`,
    simulator,
  });

/** The pages that the stored rows of each series fill, summed over the series. */
function storedPages(engine: BackfillHarness, table = "index_tick_rows"): number {
  return engine
    .query(`SELECT count(*) AS rows FROM ${table} GROUP BY series`)
    .reduce((sum, { rows }) => sum + Math.ceil(Number(rows) / PAGE_ROWS), 0);
}

const countTicks = (engine: BackfillHarness) => engine.simulator.requests.count("/v3/index-ticker");

describe("the requests of a backfill", () => {
  it("H9: a series of two days needs its pages and at most four requests, also on the next day", async () => {
    const engine = await start({ quirks: young });
    await engine.run();
    engine.expectMatchesService();
    expect(countTicks(engine)).toBeLessThanOrEqual(storedPages(engine) + 4 * names.length);
    engine.simulator.requests.clear();
    await engine.clock.advance(3_600_000);
    await engine.run();
    engine.expectMatchesService();
    expect(countTicks(engine)).toBe(names.length);
  });

  it("H9: a series without records, and daily bars, need at most four requests more than their pages", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[LIBRA]", { days: "200", ohlcv: barsOf("[BTC, LIBRA]") }),
      simulator: { quirks: { ...wholeHistories, noData: "empty" } },
    });
    await engine.run();
    engine.expectMatchesService();
    expect(countTicks(engine)).toBeLessThanOrEqual(4);
    const bars = engine.simulator.requests.count("/v3/ohlcv");
    expect(bars).toBeLessThanOrEqual(storedPages(engine, "daily_bar_rows") + 2 * 4);
  });

  it("H9: the confirmation of an end is one request, of a series without records three", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[BTC, ETH, LIBRA]", { days: "200", ohlcv: barsOf("[BTC, ETH, LIBRA]") }),
      simulator: { quirks: { ...young, noData: "empty" } },
      mustRepeatClaims: true,
    });
    await engine.run();
    const ends = () => engine.query("SELECT stream, count(*) AS n FROM pending_claims GROUP BY 1 ORDER BY 1");
    expect(ends()).toEqual([
      { stream: "index_ticks", n: 3 },
      { stream: "ohlcv", n: 3 },
    ]);
    await engine.clock.advance(3_600_000);
    engine.simulator.requests.clear();
    await engine.run();
    expect(ends()).toEqual([]);
    expect(engine.simulator.requests.count("/v3/ohlcv")).toBe(1 + 1 + 3);
    // Two series have a head too.
    expect(countTicks(engine)).toBe(2 + 1 + 1 + 3);
  });

  // `walk-queue.test.ts` has other cadences.
  it.each<[string, SimulatorOptions]>([
    ["a third of the records missing", { quirks: { missingPerMille: 333 } }],
    ["two days without records each week", { quirks: { closedDays: 2 } }],
  ])("H9: %s: at most 5 percent and four requests more than full pages; verify too", async (_, simulator) => {
    const engine = await start(simulator, ["BTC"], 12);
    await engine.run();
    engine.expectMatchesService();
    const pages = storedPages(engine);
    const maxRequests = 1.05 * pages + 4;
    expect(countTicks(engine)).toBeLessThanOrEqual(maxRequests);
    engine.simulator.requests.clear();
    expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
    expect(countTicks(engine)).toBeLessThanOrEqual(maxRequests);
  });
});
