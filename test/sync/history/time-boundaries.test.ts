import { describe, expect, it } from "vitest";
import { startEngine } from "../../support/sync/backfill-harness.ts";

const DAY_MS = 86_400_000;

const none = "exchangeTickers: false, derivatives: false, ohlcv: false";

describe("the edges of time", () => {
  it("C9: what leaves the window while it is being fetched is lost to the second, and is not called empty", async () => {
    const engine = await startEngine({
      settings: `service: { refreshSeconds: 600 }
sync: { ${none}, intraday: { GWA: [BTC, ETH, SOL], MWA: none, LX: none, days: 200 } }`,
      // Slow enough to see the window move.
      simulator: { refreshSeconds: 600, faults: "GET /index-ticker latency 50s" },
    });
    const report = await engine.run();
    expect(report).toMatchObject({ exit: 0, problems: [] });
    const { lost, rows } = engine.expectTruth();
    expect(rows).toBeGreaterThan(80_000);
    const minutes = lost / 60_000_000;
    expect(minutes).toBeGreaterThan(3);
    expect(minutes).toBeLessThan(3 * 30);
    // Empty is only what lies between two ticks.
    expect(
      engine.query("SELECT * FROM coverage WHERE proof = 'empty' AND to_ts - from_ts >= 600000000"),
    ).toEqual([]);
  });

  it("rows younger than the claim are stored at once, and claimed by a later run", async () => {
    const engine = await startEngine({
      settings: `sync: { ${none}, intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 } }`,
    });
    await engine.run();
    const young = () =>
      engine
        .query("SELECT time, is_settled FROM index_ticks ORDER BY ts DESC LIMIT 3")
        .map((row) => row.is_settled);
    expect(young()).toEqual([0, 0, 1]);
    const [newest] = engine.query("SELECT max(time) AS time FROM index_ticks");
    expect(newest).toEqual({ time: "2026-03-01T12:00:00.000000Z" });
    await engine.clock.advance(600_000);
    expect((await engine.run()).exit).toBe(0);
    engine.expectTruth();
    expect(engine.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 0 }]);
  });

  it("G3: a wrong clock of this machine hides no row and claims none", async () => {
    const engine = await startEngine({
      settings: `sync: { ${none}, intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 } }`,
      localSkewMs: -3 * 86_400_000,
    });
    const report = await engine.run();
    expect(report.exit).toBe(0);
    engine.expectTruth();
    expect(engine.query("SELECT max(time) AS time FROM index_ticks")).toEqual([
      { time: "2026-03-01T12:00:00.000000Z" },
    ]);
    const [state] = engine.query("SELECT clock_skew FROM warehouse_state");
    expect(Math.round(Number(state?.clock_skew) / 3_600_000_000)).toBe(72);
  });

  it.each([
    ["a day ahead", DAY_MS],
    ["a day behind", -DAY_MS],
    ["further ahead than the service's window is long", 201 * DAY_MS],
    ["at 1970", -Date.parse("2026-03-01T12:00:07Z")],
  ])(
    "G4: with a clock %s nothing is claimed or written off before the service has told the time",
    async (_, skew) => {
      const engine = await startEngine({ localSkewMs: skew });
      const ids = engine.simulator.universe.liquidIndexes.map(
        ({ id }, i) => `${["BLX", "ELX", "XRPLX"][i]}: "${id}"`,
      );
      // Nothing has to be looked up for these: the walks would be the first to ask.
      engine.configure(`service: { lxIndexIds: { ${ids.join(", ")} } }
sync: { ${none}, lookups: false, marketCap: false, intraday: { GWA: none, MWA: none, LX: all, days: 1 } }`);
      expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
      expect(engine.expectTruth()).toMatchObject({ lines: 3, lost: 0 });
      const [covered] = engine.query("SELECT max(to_ts) / 1000 AS to_ms, min(proof) AS proof FROM coverage");
      expect(covered?.proof).toBe("rows");
      const behind = engine.clock.now() - Number(covered?.to_ms);
      expect(behind).toBeGreaterThanOrEqual(60_000);
      expect(behind).toBeLessThan(120_000);
    },
  );

  it("C16: a list of tickers that a refresh tears is taken again, and only a whole one counts as observed", async () => {
    const engine = await startEngine({
      settings:
        "sync: { ohlcv: false, intraday: false, derivatives: false, exchangeTickers: { markets: all } }",
      simulator: { quirks: { exchangeTickerPage: 20 } },
    });
    engine.simulator.setFaults("GET /exchange-ticker latency 20s total=2");
    expect((await engine.run()).exit).toBe(0);
    expect(engine.logged.some(({ message }) => message.includes("torn"))).toBe(true);
    const moments = engine.query("SELECT DISTINCT ts FROM exchange_ticks ORDER BY ts");
    expect(moments.length).toBeGreaterThan(1);
    const covered = engine.query("SELECT from_ts FROM coverage WHERE stream = 'exchange_ticks'");
    expect(covered).toEqual([{ from_ts: moments.at(-1)?.ts }]);

    // One that is never whole is told.
    engine.simulator.setFaults("GET /exchange-ticker latency 20s");
    const { exit, problems } = await engine.run();
    expect({ exit, problems }).toMatchObject({ exit: 4, problems: [{ code: "torn_list" }] });
    expect(engine.query("SELECT from_ts FROM coverage WHERE stream = 'exchange_ticks'")).toEqual(covered);
    engine.expectTruth();

    // The ledger says which moments are partial, and for good once it is too late; their rows are as sound as any.
    await engine.clock.advance(120_000);
    engine.simulator.setFaults("");
    expect((await engine.run()).exit).toBe(0);
    const byMoment = engine.query(`SELECT t.ts, count(*) AS rows, count(t.quality) AS doubtful,
        EXISTS (SELECT 1 FROM coverage c WHERE c.stream = 'exchange_ticks' AND t.ts >= c.from_ts AND t.ts < c.to_ts) AS whole,
        (SELECT g.state || ': ' || g.reason FROM gaps g WHERE g.stream = 'exchange_ticks' AND t.ts >= g.from_ts AND t.ts < g.to_ts) AS gap
      FROM exchange_ticks t WHERE t.ts >= ${covered[0]?.from_ts} GROUP BY t.ts ORDER BY t.ts`);
    const all = byMoment[0]?.rows;
    const partial = byMoment.slice(1, -1);
    expect(partial.length).toBeGreaterThan(1);
    for (const moment of partial)
      expect(moment).toMatchObject({ doubtful: 0, whole: 0, gap: "lost: not observed" });
    for (const moment of [byMoment[0], byMoment.at(-1)])
      expect(moment).toMatchObject({ rows: all, doubtful: 0, whole: 1, gap: null });
  });
});
