import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { openWarehouse } from "../../../src/library/open-warehouse.ts";
import { readGaps } from "../../../src/warehouse/coverage/series-gaps.ts";
import { Fault } from "../../simulator/faults.ts";
import {
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
  wholeHistories,
} from "../../support/sync/backfill-harness.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const DAY_MS = 86_400_000;

describe("time boundaries", () => {
  it("C9: a slow first fill loses nothing: what leaves the window under way was never promised; later it is lost, not empty", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[BTC]", { days: "200" }),
      // Slow enough for the window to move.
      simulator: {
        refreshSeconds: 3600,
        quirks: { ...wholeHistories, maxPageRows: 300 },
        faults: [Fault.latency(50_000, { on: "/index-ticker" })],
      },
    });
    const report = await engine.run();
    expect(report).toMatchObject({ exit: 0, problems: [] });
    const { lostMicros, rows } = engine.expectMatchesService();
    expect(rows).toBeGreaterThan(4_500);
    expect(lostMicros).toBe(0);
    const agedOut = () =>
      engine.withReader((reader) =>
        readGaps(reader, "index_ticks", engine.clock.now() * 1000).flatMap((series) => series.agedOut),
      );
    expect(agedOut()).toEqual([]);
    // Only ranges between two ticks may be empty.
    expect(
      engine.query("SELECT * FROM coverage WHERE proof = 'empty' AND to_ts - from_ts >= 3600000000"),
    ).toEqual([]);
    // A day later nothing has been lost either.
    await engine.clock.advance(DAY_MS);
    expect((await engine.run()).exit).toBe(0);
    expect(engine.expectMatchesService().lostMicros).toBe(0);
    expect(agedOut()).toEqual([]);

    // Take back an hour at the edge of the window, above what the first fill has proven.
    const edge = Math.floor(engine.clock.now() * 1000) - 200 * DAY_MS * 1000;
    const database = new Database(engine.path);
    const insert = database.prepare(
      `INSERT INTO settled_ranges SELECT stream, series, ?, to_ts, proof, reason, since FROM settled_ranges
        WHERE stream = 'index_ticks' AND from_ts <= ? AND to_ts > ?`,
    );
    const oldest = [edge + 20e6, edge + 3620e6];
    insert.run(oldest[1], oldest[0], oldest[1]);
    const shorten =
      "UPDATE settled_ranges SET to_ts = ? WHERE stream = 'index_ticks' AND from_ts < ? AND to_ts > ?";
    database.prepare(shorten).run(oldest[0], oldest[0], oldest[0]);
    database.close();
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    const minutes = engine.expectMatchesService().lostMicros / 60_000_000;
    expect(minutes).toBeGreaterThan(1);
    expect(minutes).toBeLessThan(2 * 60);
    // Only ranges between two ticks may be empty.
    expect(
      engine.query("SELECT * FROM coverage WHERE proof = 'empty' AND to_ts - from_ts >= 3600000000"),
    ).toEqual([]);
  });

  it("records newer than the settle delay are stored at once and covered by a later run", async () => {
    const engine = await startBackfillHarness({ settings: onlyTicks("[BTC]") });
    await engine.run();
    const newestFlags = () =>
      engine
        .query("SELECT time, is_settled FROM index_ticks ORDER BY ts DESC LIMIT 3")
        .map((row) => row.is_settled);
    expect(newestFlags()).toEqual([0, 0, 1]);
    const [newest] = engine.query("SELECT max(time) AS time FROM index_ticks");
    expect(newest).toEqual({ time: "2026-03-01T12:00:00.000000Z" });
    await engine.clock.advance(600_000);
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
    expect(engine.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 0 }]);
  });

  it("G3: a wrong local clock neither hides rows nor covers wrong ranges", async () => {
    const engine = await startBackfillHarness({ settings: onlyTicks("[BTC]"), localSkewMs: -3 * 86_400_000 });
    const report = await engine.run();
    expect(report.exit).toBe(0);
    engine.expectMatchesService();
    expect(engine.query("SELECT max(time) AS time FROM index_ticks")).toEqual([
      { time: "2026-03-01T12:00:00.000000Z" },
    ]);
    const [state] = engine.query("SELECT clock_skew FROM warehouse_state");
    expect(Math.round(Number(state?.clock_skew) / 3_600_000_000)).toBe(72);
  });

  it.each([
    ["further ahead than the service's window is long", 201 * DAY_MS],
    ["at 1970", -Date.parse("2026-03-01T12:00:07Z")],
  ])(
    "G4: with a local clock %s nothing is covered or lost before the service's time is known",
    async (_, skew) => {
      const engine = await startBackfillHarness({ localSkewMs: skew });
      const [blx] = engine.simulator.universe.liquidIndexes;
      // These settings need no lookup, so a walk would be the first request.
      engine.configure(
        `service: { lxIndexIds: { BLX: "${blx?.id}" } }\n${onlyTicks("none", { LX: "[BLX]", lookups: "false" })}`,
      );
      expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
      expect(engine.expectMatchesService()).toMatchObject({ seriesCount: 1, lostMicros: 0 });
      const [covered] = engine.query("SELECT max(to_ts) / 1000 AS to_ms, min(proof) AS proof FROM coverage");
      expect(covered?.proof).toBe("rows");
      const behind = engine.clock.now() - Number(covered?.to_ms);
      expect(behind).toBeGreaterThanOrEqual(240_000);
      expect(behind).toBeLessThan(480_000);
    },
  );

  it.each([20_000, -3_600_000])(
    "G3: with a local clock %d ms ahead each earlier state is the one of its moment by that clock",
    async (skew) => {
      const engine = await startBackfillHarness({
        settings: onlyTicks("[BTC]"),
        localSkewMs: skew,
        simulator: { refreshSeconds: 300, quirks: { corrections: { perMille: 300, minutes: 10 } } },
      });
      const start = (engine.clock.now() + skew) * 1000;
      const ask = (state: { knownAt?: number } = {}) => {
        using warehouse = openWarehouse(engine.path);
        return warehouse.ticks("BTC", state).map(({ time, price_exact }) => `${time} ${price_exact}`);
      };
      const seen: { at: number; ticks: string[] }[] = [];
      const look = async () => {
        await engine.clock.advance(1_000);
        seen.push({ at: (engine.clock.now() + skew) * 1000, ticks: ask() });
        await engine.clock.advance(1_000);
      };
      await engine.run();
      await look();
      await engine.clock.advance(300_000);
      await engine.run();
      await look();
      await engine.clock.advance(1_200_000);
      await engine.verify();
      await look();
      await engine.clock.advance(3 * 3_600_000);
      await engine.run();
      await look();
      for (const { at, ticks } of seen) expect(ask({ knownAt: at })).toEqual(ticks);
      expect(new Set(seen.map(({ ticks }) => ticks.join())).size).toBe(4);
      expect(() => ask({ knownAt: start - 1 })).toThrow("keeps its past since");

      // The present of an earlier state is by the service's clock, as the timestamps of its ticks are.
      using warehouse = openWarehouse(engine.path);
      for (const { at, ticks } of seen) {
        const [newest] = warehouse.asOf("now", "BTC", { knownAt: at });
        const age = at / 1e6 - skew / 1e3 - parseTs(String(ticks.at(-1)?.split(" ")[0])) / 1e6;
        expect(Math.abs((newest?.age_seconds ?? 0) - age)).toBeLessThan(2);
      }
      // A correction is dated by the clock with which its state is asked for.
      const [revision] = engine.query(`SELECT time, changed_at, json_extract(before, '$.price') AS before,
        json_extract(after, '$.price') AS after FROM revisions LIMIT 1`);
      const changedAt = parseTs(String(revision?.changed_at));
      expect(ask({ knownAt: changedAt - 1 })).toContain(`${revision?.time} ${revision?.before}`);
      expect(ask({ knownAt: changedAt })).toContain(`${revision?.time} ${revision?.after}`);
    },
  );

  it.each(["404", "empty"] as const)(
    "G4: with a Date 30 days ahead nothing above the present is settled (no data: %s)",
    async (noData) => {
      const engine = await startBackfillHarness({
        settings: onlyTicks("[BTC, LIBRA]", { days: "35" }),
        localSkewMs: -30 * DAY_MS,
        simulator: {
          refreshSeconds: 600,
          quirks: { noData, listed: { perMille: 1000, on: "2026-01-30" } },
          faults: [Fault.lag(30 * 86_400_000, { on: "/index-ticker" })],
        },
      });
      for (let run = 0; run < 2; run++) {
        await engine.run();
        const present = (engine.clock.now() - 30 * DAY_MS) * 1000;
        const [settled] = engine.query(
          "SELECT max(to_ts) AS to_ts, count(DISTINCT name) AS names FROM coverage",
        );
        expect(Number(settled?.to_ts)).toBeLessThanOrEqual(present);
        expect(settled?.names).toBe(2);
        await engine.clock.advance(3_600_000);
      }
    },
  );

  it("C16: a ticker list torn by a refresh is fetched again; only a complete list counts as coverage", async () => {
    const engine = await startDenseHarness({
      settings:
        "sync: { ohlcv: false, intraday: false, derivatives: false, exchangeTickers: { markets: all } }",
      simulator: { quirks: { exchangeTickerPage: 20 } },
    });
    engine.simulator.setFaults(Fault.latency(20_000, { on: "/exchange-ticker", total: 2 }));
    expect((await engine.run()).exit).toBe(0);
    expect(engine.logged.some(({ message }) => message.includes("torn"))).toBe(true);
    const timestamps = engine.query("SELECT DISTINCT ts FROM exchange_ticks ORDER BY ts");
    expect(timestamps.length).toBeGreaterThan(1);
    const covered = engine.query("SELECT from_ts FROM coverage WHERE stream = 'exchange_ticks'");
    expect(covered).toEqual([{ from_ts: timestamps.at(-1)?.ts }]);

    // A list that is torn every time is reported.
    engine.simulator.setFaults(Fault.latency(20_000, { on: "/exchange-ticker" }));
    const { exit, problems } = await engine.run();
    expect({ exit, problems }).toMatchObject({ exit: 4, problems: [{ code: "torn_list" }] });
    expect(engine.query("SELECT from_ts FROM coverage WHERE stream = 'exchange_ticks'")).toEqual(covered);
    engine.expectMatchesService();

    // Torn periods become lost in the ledger; their rows carry no quality flag.
    await engine.clock.advance(120_000);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    const byTimestamp = engine.query(`SELECT t.ts, count(*) AS rows, count(t.quality) AS flagged,
        EXISTS (SELECT 1 FROM coverage c WHERE c.stream = 'exchange_ticks' AND t.ts >= c.from_ts AND t.ts < c.to_ts) AS is_covered,
        (SELECT g.state || ': ' || g.reason FROM gaps g WHERE g.stream = 'exchange_ticks' AND t.ts >= g.from_ts AND t.ts < g.to_ts) AS gap
      FROM exchange_ticks t WHERE t.ts >= ${covered[0]?.from_ts} GROUP BY t.ts ORDER BY t.ts`);
    const all = byTimestamp[0]?.rows;
    const partial = byTimestamp.slice(1, -1);
    expect(partial.length).toBeGreaterThan(1);
    for (const row of partial)
      expect(row).toMatchObject({ flagged: 0, is_covered: 0, gap: "lost: not observed" });
    for (const row of [byTimestamp[0], byTimestamp.at(-1)])
      expect(row).toMatchObject({ rows: all, flagged: 0, is_covered: 1, gap: null });
  });
});
