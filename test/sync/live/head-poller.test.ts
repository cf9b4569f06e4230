import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { Fault } from "../../simulator/faults.ts";
import { all, assetsOf, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const intraday = { ...ticksOf("BTC", "ETH", "SOL"), LX: all };
const idOf = (target: string) => new URL(target, "http://x").searchParams.get("indexId");

describe("polling the heads of live series", () => {
  it("happens hourly, each series at its own time; bars once their day has closed", async () => {
    const start = "2026-03-01T22:40:07Z";
    const quirks = { listed: { perMille: 1000, on: "2026-02-01" } };
    const sync = { ohlcv: assetsOf("BTC", "ETH"), intraday };
    const harness = await SupervisorHarness.start({
      sync,
      start,
      refreshSeconds: 120,
      simulator: { quirks },
    });
    await harness.runUntilSettled();
    expect(harness.activity).toBe("following the live feed");
    const from = harness.requestCount;
    const perTenMinutes: number[] = [];
    for (let minute = 0; minute < 140; minute += 10) {
      expect(harness.readGaps("stream = 'index_ticks' AND reason <> 'settling'")).toEqual([]);
      const before = harness.requestCount;
      await harness.advance(600);
      perTenMinutes.push(harness.requestsTo("/index-ticker", before).length);
    }
    // The hourly lookups find the liquid indices with a page without an index filter.
    const ticks = harness.requestsTo("/index-ticker", from).filter(({ target }) => idOf(target) !== null);
    const bySeries = Map.groupBy(ticks, ({ target }) => idOf(target));
    expect(bySeries.size).toBe(6);
    for (const requests of bySeries.values()) expect([2, 3]).toContain(requests.length);
    expect(Math.max(...perTenMinutes)).toBeLessThanOrEqual(4);

    const bars = harness.requestsTo("/ohlcv", from);
    expect(new Set(bars.map(({ target }) => idOf(target))).size).toBe(2);
    const [first = 0, second = 0, ...more] = bars.map(({ at }) => at);
    expect(more).toEqual([]);
    expect(first).toBeGreaterThan(Date.parse("2026-03-02T00:04:00Z"));
    expect(second - first).toBeGreaterThan(60_000);
    expect(harness.query("SELECT 1 FROM ohlcv WHERE day = '2026-03-01' AND is_final")).toHaveLength(2);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 5_400_000);
  });

  it("proves a finished hour within minutes by default, each series at its own time", async () => {
    const harness = await SupervisorHarness.start({
      sync: { intraday },
      refreshSeconds: 60,
      confirmEvery: loadSettings({ env: {}, directory: temporaryFolder() }).settings.sync.confirmEvery,
    });
    await harness.runUntilSettled();
    const from = harness.requestCount;
    await harness.advance(3600);
    const unproven = () =>
      harness.query(
        `SELECT series FROM (SELECT series, max(to_ts) AS proven FROM settled_ranges WHERE stream = 'index_ticks' GROUP BY series)
          WHERE proven < ${harness.clock.now() * 1000 - 17 * 60e6}`,
      );
    for (let minute = 0; minute < 60; minute += 5) {
      await harness.advance(300);
      expect(unproven()).toEqual([]);
    }
    const polls = harness.requestsTo("/index-ticker", from).filter(({ target }) => idOf(target) !== null);
    const bySeries = Map.groupBy(polls, ({ target }) => idOf(target));
    expect(bySeries.size).toBe(6);
    for (const requests of bySeries.values()) expect(requests.length).toBeLessThanOrEqual(14);
    harness.expectMatchesService(harness.clock.now() - 5_400_000);
  });

  it("C12: the hourly page also finds corrected and late records, without another request", async () => {
    const harness = await SupervisorHarness.start({
      sync: { intraday: ticksOf("BTC") },
      refreshSeconds: 120,
      simulator: {
        quirks: { corrections: { perMille: 400, minutes: 28 }, late: { perMille: 50, seconds: 1680 } },
      },
    });
    await harness.runUntilSettled();
    const from = harness.requestCount;
    await harness.advance(4 * 3600);
    expect(harness.requestsTo("/index-ticker", from).length).toBeLessThanOrEqual(6);
    // At the latest, the second hourly page finds a change: after 1.5 hours, plus the half hour in which records change.
    harness.expectMatchesService(harness.clock.now() - 2 * 3_600_000);
    const late = harness.query("SELECT count(*) AS n FROM revisions WHERE changed_at > '2026-03-01T03'");
    expect(Number(late[0]?.n)).toBeGreaterThan(5);
  });

  it("a tick that the feed skips is noticed at the next tick and fetched within minutes", async () => {
    const harness = await SupervisorHarness.start({ sync: { intraday } });
    await harness.runUntilSettled();
    await harness.advance(400);
    harness.simulator.setFaults(Fault.missingTick({ total: 1, query: { name: "ELX" } }));
    await harness.advance(35);
    harness.simulator.setFaults();
    const stored = () => harness.query("SELECT 1 FROM index_tick_rows").length;
    const from = harness.requestCount;
    const before = stored();
    await harness.advance(125);
    const polled = harness.requestsTo("/index-ticker", from).map(({ target }) => idOf(target));
    const [{ id } = {}] = harness.query("SELECT index_id AS id FROM series WHERE name = 'ELX'");
    expect(polled).toEqual([id]);
    // Six series with four ticks each, plus the skipped one.
    expect(stored() - before).toBe(6 * 4 + 1);
  });

  it("goes on after a poll that could not read how far it got", async () => {
    const harness = await SupervisorHarness.start({ sync: { intraday }, confirmEvery: 60 });
    await harness.runUntilSettled();
    const database = new Database(harness.path);
    const rename = (from: string, to: string) => database.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
    database.pragma("legacy_alter_table = ON");
    rename("publications", "hidden");
    await harness.advance(120);
    rename("hidden", "publications");
    database.close();
    expect(harness.failures.splice(0).map(String).join()).toContain("publications");
    const from = harness.requestCount;
    await harness.advance(180);
    expect(harness.requestsTo("/index-ticker", from).length).toBeGreaterThan(5);
  });
});
