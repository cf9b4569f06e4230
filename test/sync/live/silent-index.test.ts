import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { SilenceTracker } from "../../../src/sync/live/silence-tracker.ts";
import { SupervisorHarness } from "../../support/sync/supervisor-harness.ts";

const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const sync = {
  ohlcv: false,
  intraday: { GWA: none, MWA: none, LX: all, days: 1 },
  exchangeTickers: false,
  marketCap: false,
  derivatives: false,
};
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

describe("an index that falls silent while its type is live", () => {
  it("H6: is asked for by REST within three periods, polled while silent, and live again once it speaks", async () => {
    const { harness, polls } = await startFollowing();
    harness.simulator.setFaults("ws missing-tick query=name=ELX");
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
    expect([...polls("BLX", from), ...polls("XRPLX", from)].length).toBeLessThanOrEqual(3);

    harness.simulator.setFaults("");
    await harness.advance(4 * PERIOD);
    const recovered = harness.requestCount;
    await harness.advance(1200);
    expect(polls("ELX", recovered).length).toBeLessThanOrEqual(3);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 5_400_000);
    expect(harness.failures).toEqual([]);
  });

  it("H6: from the start is noticed too, although no tick of it ever arrived", async () => {
    const harness = await SupervisorHarness.start({
      sync,
      simulator: { faults: "ws missing-tick query=name=ELX" },
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
      sync: { ...sync, intraday: { GWA: all, MWA: none, LX: none, days: 1 } },
      refreshSeconds: 120,
      simulator: { size: { assets: 30, markets: 10, exchanges: 2 }, quirks: { noData: "empty" } },
    });
    await harness.runUntilSettled();
    const from = harness.requestCount;
    await harness.advance(6 * 3600);
    const quiet = harness.query(
      `SELECT index_id AS id FROM series s WHERE index_type = 'GWA' AND EXISTS (SELECT 1 FROM wanted_ranges w
        WHERE w.series = s.series AND w.stream = 'index_ticks') AND NOT EXISTS
        (SELECT 1 FROM index_tick_rows r WHERE r.series = s.series)`,
    );
    expect(quiet.length).toBeGreaterThan(0);
    for (const { id } of quiet) {
      const polls = harness
        .requestsTo("/index-ticker", from)
        .filter(({ target }) => target.includes(String(id)));
      // Each poll of an empty head takes three requests, and six polls are hourly. At cadence there would be 540.
      expect(polls.length).toBeLessThan(60);
    }
  });
});

describe("the silence that counts as usual", () => {
  const cadence = PERIOD * MICROS_PER_SECOND;

  it("H6: is learned from REST: an index that ticks every ten minutes is asked for a few times a day", () => {
    const tracker = new SilenceTracker(cadence);
    let polls = 0;
    let lastTick = 0;
    for (let now = 0; now < 86_400 * MICROS_PER_SECOND; now += cadence / 2) {
      if (now - lastTick >= 20 * cadence) lastTick = now;
      tracker.update(now - lastTick > 2.5 * cadence ? lastTick : undefined, now);
      if (tracker.suspectedSince === undefined) continue;
      polls++;
      tracker.resolve(false, now);
    }
    expect(polls).toBeGreaterThan(0);
    expect(polls).toBeLessThan(10);
  });

  it("H6: of an index that has ended grows: it is asked for a dozen times at most", () => {
    const tracker = new SilenceTracker(cadence);
    let polls = 0;
    for (let now = 0; now < 86_400 * MICROS_PER_SECOND; now += cadence / 2) {
      tracker.update(now > 2.5 * cadence ? 0 : undefined, now);
      if (tracker.suspectedSince === undefined) continue;
      polls++;
      tracker.resolve(false, now);
    }
    expect(polls).toBeLessThanOrEqual(12);
  });

  it("H6: does not grow by ticks that were lost: the next loss is noticed as soon", () => {
    const tracker = new SilenceTracker(cadence);
    const minute = 2 * cadence;
    for (let round = 0; round < 5; round++) {
      const start = round * 60 * minute;
      expect(tracker.update(undefined, start)).toBe(round > 0);
      expect(tracker.update(start, start + 2.6 * cadence)).toBe(true);
      tracker.resolve(true, start + 3 * cadence);
      expect(tracker.isSilent).toBe(true);
    }
  });
});
