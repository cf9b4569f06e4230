import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { all, none, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = { intraday: { GWA: none, MWA: none, LX: all, days: 1 } };
const PERIOD = 30;

async function startFollowing(simulator = {}) {
  const harness = await SupervisorHarness.start({ sync, simulator });
  await harness.runUntilSettled();
  await harness.advance(400);
  const idOf = (name: string) =>
    String(harness.query(`SELECT index_id AS id FROM series WHERE name = '${name}'`)[0]?.id);
  /** The REST polls of an index since the request number `from`. */
  const polls = (name: string, from: number) =>
    harness
      .requestsTo("/index-ticker", from)
      .filter(({ target }) => target.includes(`indexId=${idOf(name)}`));
  return { harness, polls };
}

it("a live tick of an index that REST does not list is kept with the rejects, and selects nothing", async () => {
  const { harness } = await startFollowing();
  harness.simulator.setFaults(
    Fault.set("indexId", "stray", { on: "ticks", total: 1, query: { name: "BLX" } }),
  );
  await harness.advance(2 * PERIOD);
  const rejects = harness.query("SELECT stream, reason, raw FROM rejects");
  expect(rejects).toMatchObject([{ stream: "index_ticks", reason: "REST does not list the index" }]);
  expect(String(rejects[0]?.raw)).toContain('"stray"');
  const named = "SELECT count(*) AS n FROM series WHERE index_type = 'LX'";
  expect(harness.query(named)).toEqual([{ n: 3 }]);
  await harness.advance(3 * PERIOD);
  expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
});

describe("an index that falls silent while its type is live", () => {
  it("H6: is asked for by REST within three periods, polled while silent, and live again once it speaks", async () => {
    const { harness, polls } = await startFollowing();
    harness.simulator.setFaults(Fault.missingTick({ query: { name: "ELX" } }));
    let renewals = 0;
    harness.supervisor?.subscriptions.on("silent", () => renewals++);
    const mutedAt = harness.clock.now();
    const from = harness.requestCount;
    await harness.runUntil(() => polls("ELX", from).length > 0, 4 * PERIOD);
    // The last tick came up to a period before.
    expect(harness.clock.now() - mutedAt).toBeLessThanOrEqual(3 * PERIOD * 1000);
    const newest = () =>
      Number(harness.query("SELECT max(ts) AS ts FROM index_ticks WHERE name = 'ELX'")[0]?.ts) / 1e6;
    for (let minute = 0; minute < 20; minute++) {
      await harness.advance(60);
      // Two periods, and the time of a poll.
      expect(harness.clock.now() / 1000 - newest()).toBeLessThan(2 * PERIOD + 5);
    }
    expect(polls("ELX", from).length).toBeGreaterThanOrEqual(35);
    expect(renewals).toBe(1);
    expect([...polls("BLX", from), ...polls("XRPLX", from)].length).toBeLessThanOrEqual(3);

    harness.simulator.setFaults();
    await harness.advance(4 * PERIOD);
    const recovered = harness.requestCount;
    await harness.advance(1200);
    expect(polls("ELX", recovered).length).toBeLessThanOrEqual(3);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 5_400_000);
  });

  it("H6: from the start is noticed too, although no tick of it ever arrived", async () => {
    const harness = await SupervisorHarness.start({
      sync,
      simulator: { faults: [Fault.missingTick({ query: { name: "ELX" } })] },
    });
    await harness.runUntilSettled();
    await harness.advance(3 * PERIOD);
    const from = harness.requestCount;
    await harness.advance(600);
    const id = harness.simulator.universe.liquidIndexes.find(({ name }) => name === "ELX")?.id;
    const polls = harness
      .requestsTo("/index-ticker", from)
      .filter(({ target }) => target.includes(String(id)));
    expect(polls.length).toBeGreaterThanOrEqual(18);
  });

  it("H6: and has no ticks in REST either is quiet: it is polled a few times, not at cadence", async () => {
    const harness = await SupervisorHarness.start({
      sync: { intraday: ticksOf("BTC", "LIBRA") },
      refreshSeconds: 120,
      simulator: { size: { assets: 12, markets: 4, exchanges: 2 }, quirks: { noData: "empty" } },
    });
    await harness.runUntilSettled();
    const from = harness.requestCount;
    await harness.advance(2 * 3600);
    const quiet = harness.query(
      `SELECT index_id AS id FROM series s WHERE index_type = 'GWA' AND EXISTS (SELECT 1 FROM targets w
        WHERE w.series = s.series AND w.stream = 'index_ticks') AND NOT EXISTS
        (SELECT 1 FROM index_tick_rows r WHERE r.series = s.series)`,
    );
    expect(quiet).toHaveLength(1);
    for (const { id } of quiet) {
      const polls = harness
        .requestsTo("/index-ticker", from)
        .filter(({ target }) => target.includes(String(id)));
      // Each poll of an empty head takes three requests, and two polls are hourly. At cadence there would be 180.
      expect(polls.length).toBeLessThan(40);
    }
  });

  it("E13: as all do, while the socket stays open: REST is polled within three periods, and the feed reconnects", async () => {
    const { harness } = await startFollowing();
    const upgrades = () =>
      harness.simulator.requests.list.filter(({ target }) => target.startsWith("/v3/stream")).length;
    harness.simulator.setFaults(Fault.mute({ when: "tick", total: 1 }));
    const mutedAt = harness.clock.now();
    await harness.runUntil(() => harness.activity.startsWith("polling"), 5 * PERIOD);
    // The mute begins with the next tick, up to a period later.
    expect(harness.clock.now() - mutedAt).toBeLessThanOrEqual(4 * PERIOD * 1000);
    const newest = () =>
      Number(
        harness.query("SELECT min(ts) AS ts FROM (SELECT max(ts) AS ts FROM index_ticks GROUP BY name)")[0]
          ?.ts,
      ) / 1e6;
    await harness.advance(PERIOD + 5);
    expect(harness.clock.now() / 1000 - newest()).toBeLessThan(2 * PERIOD + 5);
    await harness.runUntil(() => upgrades() === 2, 4 * PERIOD);
    await harness.runUntil(() => harness.activity === "following the live feed", 2 * PERIOD);
    await harness.advance(300);
    expect(upgrades()).toBe(2);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
  });
});
