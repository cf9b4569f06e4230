import { describe, expect, it } from "vitest";
import { KeeperUnderTest } from "../../support/sync/supervisor-harness.ts";

const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const list = (...names: string[]) => ({ kind: "list", names }) as const;
const sync = {
  ohlcv: false,
  intraday: { GWA: list("BTC", "ETH"), MWA: none, LX: all, days: 1 },
  exchangeTickers: { exchanges: list("Kraken"), markets: list("BTC/USD", "ETH/USD") },
  marketCap: false,
  derivatives: false,
};
const LINES = 5;

const following = async () => {
  const under = await KeeperUnderTest.start({ sync });
  await under.settled();
  await under.pass(400);
  expect(under.activity).toBe("following the live feed");
  return under;
};
const open = (under: KeeperUnderTest) => under.gaps("reason <> 'settling'");

describe("a break of the live feed", () => {
  it("is filled at once for whatever missed something; meanwhile REST is polled at cadence", async () => {
    const under = await following();
    under.simulator.setFaults("ws drop-connection 1006 on=tick\nws upgrade-status 503");
    await under.until(() => under.activity.startsWith("polling"), 40);
    const from = under.requests;
    await under.pass(300);
    // Ten refreshes: each line is asked for about once in each, and never more.
    const polls = under.asked("/index-ticker", from).length;
    expect(polls).toBeGreaterThanOrEqual(8 * LINES);
    expect(polls).toBeLessThanOrEqual(11 * LINES);
    expect(under.asked("/exchange-ticker", from).length).toBeGreaterThanOrEqual(9);
    expect(Math.max(...open(under).map(({ seconds }) => Number(seconds)))).toBeLessThanOrEqual(30);

    under.simulator.setFaults("");
    await under.until(() => under.activity === "following the live feed", 90);
    await under.until(() => open(under).length === 0, 5);
    const back = under.requests;
    await under.pass(240);
    // The second look, when the service can add nothing more to what was missed.
    expect(under.asked("/index-ticker", back).length).toBeLessThanOrEqual(LINES);
    expect(under.asked("/exchange-ticker", back)).toEqual([]);
    expect(open(under)).toEqual([]);
    under.expectTruth(under.clock.now() - 600_000);
    expect(under.query("SELECT count(*) AS ranges FROM coverage WHERE stream = 'exchange_ticks'")).toEqual([
      { ranges: 1 },
    ]);
  });

  it("in which the socket lives and no tick comes is noticed, filled where there is a history, and lost where not", async () => {
    const under = await following();
    under.simulator.setFaults("ws mute on=tick total=1");
    await under.until(() => under.activity.startsWith("polling"), 150);
    under.simulator.setFaults("");
    await under.until(() => under.activity === "following the live feed", 200);
    await under.pass(150);
    expect(under.gaps("state = 'open' AND reason <> 'settling'")).toEqual([]);
    under.expectTruth(under.clock.now() - 900_000);
    const lost = under.gaps("state = 'lost'");
    expect(lost.map(({ stream, name, reason }) => [stream, name, reason])).toEqual([
      ["exchange_ticks", "Kraken", "not observed"],
    ]);
    expect([30, 60, 90]).toContain(lost[0]?.seconds);
    // Every period that is claimed has its ticks.
    const [{ periods = 0 } = {}] = under.query("SELECT count(DISTINCT ts) AS periods FROM exchange_ticks");
    const [{ covered = 0 } = {}] = under.query(
      "SELECT sum(to_ts - from_ts) / 30000000 AS covered FROM coverage WHERE stream = 'exchange_ticks'",
    );
    expect(covered).toBeLessThanOrEqual(Number(periods));
    expect(covered).toBeGreaterThanOrEqual(Number(periods) - 2);
  });

  it("that lasts, under a low ceiling on requests, leaves history its share, and polls theirs", async () => {
    // More lines than requests that may be under way.
    const gwa = list("BTC", "ETH", "USDT", "XRP", "SOL", "DOGE", "LTC");
    const mwa = list("BTC/USD", "ETH/USD", "XRP/USD", "SOL/USD");
    const under = await KeeperUnderTest.start({
      simulator: { faults: "ws upgrade-status 503" },
      sync: {
        ...sync,
        intraday: { GWA: gwa, MWA: mwa, LX: none, days: 1 },
        exchangeTickers: false,
      },
      refreshSeconds: 5,
      maxRequestsPerSecond: 1,
    });
    await under.until(() => under.isFilled, 500, 10);
    const from = under.requests;
    await under.pass(200);
    // Each line in its turn, as often as half of the ceiling allows.
    const polls = under.asked("/index-ticker", from);
    expect(polls.length).toBeGreaterThan(80);
    expect(polls.length).toBeLessThan(120);
    under.expectTruth(under.clock.now() - 300_000);
  });

  it("E9: messages that this version does not know break nothing, and are counted with a sample of each", async () => {
    const under = await KeeperUnderTest.start({ sync: { ...sync, exchangeTickers: false } });
    await under.until(() => under.activity === "following the live feed");
    const odd = ["trade", "no-event", "array", "null", "not-json", "garbage"];
    under.simulator.setFaults(odd.map((is) => `ws message ${is} on=tick total=3`).join("\n"));
    await under.pass(90);
    expect(
      under.query(
        `SELECT "where", name, count, sample FROM unknown_events WHERE name <> '(binary)' ORDER BY name`,
      ),
    ).toEqual([
      { where: "websocket", name: "(none)", count: 12, sample: '{"price":"1"}' },
      { where: "websocket", name: "TRADE", count: 3, sample: expect.stringContaining('"tradeId":"77"') },
    ]);
    expect(under.query("SELECT sum(count) AS n FROM unknown_events")).toEqual([{ n: 3 * odd.length }]);
    expect(under.logged.filter(({ message }) => message.includes("does not know")).length).toBeLessThan(4);
    expect(under.activity).toBe("following the live feed");
    under.expectTruth(under.clock.now() - 120_000);
  });
});
