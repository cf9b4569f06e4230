import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { all, list, none, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const intraday = { ...ticksOf("BTC", "ETH"), LX: all };
const exchangeTickers = { exchanges: list("Kraken"), markets: list("BTC/USD", "ETH/USD") };
const sync = { intraday, exchangeTickers };
const SERIES_COUNT = 5;

const startFollowing = async () => {
  const harness = await SupervisorHarness.start({ sync });
  await harness.runUntilSettled();
  await harness.advance(400);
  expect(harness.activity).toBe("following the live feed");
  return harness;
};
const openGaps = (harness: SupervisorHarness) => harness.readGaps("reason <> 'settling'");

describe("a disconnect of the live feed", () => {
  it("E16: fills the gaps at once; meanwhile REST is polled at cadence", async () => {
    const harness = await startFollowing();
    harness.simulator.setFaults(Fault.dropConnection({ when: "tick" }), Fault.upgradeStatus(503));
    const logged = harness.logged.length;
    await harness.runUntil(() => harness.activity.startsWith("polling"), 40);
    expect(harness.logged.slice(logged).filter(({ message }) => /\blive\b/.test(message))).toMatchObject([
      { message: "live feed down, reconnecting", fields: { reason: "closed_1006" } },
    ]);
    const from = harness.requestCount;
    await harness.advance(300);
    // Ten periods: each series is polled about once in each.
    const polls = harness.requestsTo("/index-ticker", from).length;
    expect(polls).toBeGreaterThanOrEqual(8 * SERIES_COUNT);
    expect(polls).toBeLessThanOrEqual(11 * SERIES_COUNT);
    expect(harness.requestsTo("/exchange-ticker", from).length).toBeGreaterThanOrEqual(9);
    expect(Math.max(...openGaps(harness).map(({ seconds }) => Number(seconds)))).toBeLessThanOrEqual(30);

    harness.simulator.setFaults();
    await harness.runUntil(() => harness.activity === "following the live feed", 90);
    await harness.runUntil(() => openGaps(harness).length === 0, 5);
    const back = harness.requestCount;
    await harness.advance(240);
    // One more poll each after the settle delay.
    expect(harness.requestsTo("/index-ticker", back).length).toBeLessThanOrEqual(SERIES_COUNT);
    expect(harness.requestsTo("/exchange-ticker", back)).toEqual([]);
    expect(openGaps(harness)).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 600_000);
    expect(harness.query("SELECT count(*) AS ranges FROM coverage WHERE stream = 'exchange_ticks'")).toEqual([
      { ranges: 1 },
    ]);
  });

  it("that leaves the socket open without ticks is detected: history streams are filled, snapshot streams lose data", async () => {
    const harness = await startFollowing();
    harness.simulator.setFaults(Fault.mute({ when: "tick", total: 1 }));
    await harness.runUntil(() => harness.activity.startsWith("polling"), 150);
    harness.simulator.setFaults();
    await harness.runUntil(() => harness.activity === "following the live feed", 200);
    await harness.advance(150);
    expect(harness.readGaps("state = 'open' AND reason <> 'settling'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 900_000);
    const lost = harness.readGaps("state = 'lost'");
    expect(lost.map(({ stream, name, reason }) => [stream, name, reason])).toEqual([
      ["exchange_ticks", "Kraken", "not observed"],
    ]);
    expect([30, 60, 90]).toContain(lost[0]?.seconds);
    // Every covered period has its ticks.
    const [{ periods = 0 } = {}] = harness.query("SELECT count(DISTINCT ts) AS periods FROM exchange_ticks");
    const [{ covered = 0 } = {}] = harness.query(
      "SELECT sum(to_ts - from_ts) / 30000000 AS covered FROM coverage WHERE stream = 'exchange_ticks'",
    );
    expect(covered).toBeLessThanOrEqual(Number(periods));
    // The last tick before the silence may have come late: its period is open too.
    expect(covered).toBeGreaterThanOrEqual(Number(periods) - 3);
  });

  it("that lasts shares a low request limit between history and polls", async () => {
    // More series than requests in flight.
    const gwa = list("BTC", "ETH", "USDT", "XRP", "SOL", "DOGE", "LTC");
    const mwa = list("BTC/USD", "ETH/USD", "XRP/USD", "SOL/USD");
    const harness = await SupervisorHarness.start({
      // A few minutes of records: what is filled before shows nothing about polls.
      start: "2026-03-01T00:20:07Z",
      simulator: { faults: [Fault.upgradeStatus(503)] },
      sync: { intraday: { GWA: gwa, MWA: mwa, LX: none, days: 1 } },
      refreshSeconds: 5,
      maxRequestsPerSecond: 1,
    });
    await harness.runUntil(() => harness.isFilled, 500, 10);
    const from = harness.requestCount;
    await harness.advance(200);
    // Each series in turn, as often as half of the limit allows.
    const polls = harness.requestsTo("/index-ticker", from);
    expect(polls.length).toBeGreaterThan(80);
    expect(polls.length).toBeLessThan(120);
    harness.expectMatchesService(harness.clock.now() - 300_000);
  });
});

it("E9: unknown messages of the live feed have no effect and are counted with a sample of each kind", async () => {
  const harness = await SupervisorHarness.start({ sync: { intraday } });
  await harness.runUntil(() => harness.activity === "following the live feed");
  const unknownMessages = ["trade", "no-event", "array", "null", "not-json", "garbage"] as const;
  harness.simulator.setFaults(...unknownMessages.map((is) => Fault.message(is, { when: "tick", total: 3 })));
  await harness.advance(90);
  expect(
    harness.query(
      `SELECT "where", name, count, sample FROM unknown_events WHERE name <> '(binary)' ORDER BY name`,
    ),
  ).toEqual([
    { where: "websocket", name: "(none)", count: 12, sample: '{"price":"1"}' },
    { where: "websocket", name: "TRADE", count: 3, sample: expect.stringContaining('"tradeId":"77"') },
  ]);
  expect(harness.query("SELECT sum(count) AS n FROM unknown_events")).toEqual([
    { n: 3 * unknownMessages.length },
  ]);
  expect(
    harness.logged.filter(({ message }) => message.includes("unknown live messages")).length,
  ).toBeLessThan(4);
  expect(harness.activity).toBe("following the live feed");
  harness.expectMatchesService(harness.clock.now() - 120_000);
});
