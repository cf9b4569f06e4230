import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { all, list, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

describe("exchange tickers", () => {
  it("are received live and not polled; each complete period is covered, per exchange", async () => {
    const exchangeTickers = { exchanges: list("Kraken", "Coinbase"), markets: list("BTC/USD") };
    const harness = await SupervisorHarness.start({ sync: { exchangeTickers } });
    await harness.advance(20);
    const from = harness.requestCount;
    await harness.advance(600);
    expect(harness.requestsTo("/exchange-ticker", from)).toEqual([]);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    expect(harness.query("SELECT name, from_time, to_time FROM coverage ORDER BY name")).toEqual(
      ["Coinbase", "Kraken"].map((name) => ({
        name,
        from_time: "2026-03-01T02:00:00.000000Z",
        // The current period is covered once every market has ticked in it.
        to_time: "2026-03-01T02:10:30.000000Z",
      })),
    );
    // Other markets of the exchanges are not selected.
    expect(harness.query("SELECT DISTINCT pair FROM exchange_ticks")).toEqual([{ pair: "BTC/USD" }]);
    expect(harness.query("SELECT count(*) AS ticks FROM exchange_ticks")).toEqual([{ ticks: 2 * 21 }]);
  });

  it.each([
    ["before", [Fault.lag(2000, { on: "/exchange-ticker" })]],
    ["after", [Fault.lag(700, { on: "/exchange-ticker" }), Fault.connected("late", { by: 2000 })]],
  ])("lose nothing if REST publishes late, and the feed begins %s it does", async (_, faults) => {
    const exchangeTickers = { exchanges: all, markets: list("BTC/USD") };
    const harness = await SupervisorHarness.start({
      start: "2026-03-01T12:00:00.300Z",
      refreshSeconds: 5,
      sync: { exchangeTickers },
      simulator: { faults },
    });
    await harness.advance(40);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    // The first answer has the records of the period before.
    expect(harness.query("SELECT from_time, to_time FROM coverage")).toEqual([
      { from_time: "2026-03-01T11:59:55.000000Z", to_time: "2026-03-01T12:00:45.000000Z" },
    ]);
    // The period in which the feed begins is polled until REST shows it, and none after it.
    expect(harness.requestsTo("/exchange-ticker", 0).length).toBeLessThanOrEqual(4);
  });

  it("E13: are polled in a period in which the feed lost them", async () => {
    const exchangeTickers = { exchanges: list("Kraken", "Coinbase"), markets: all };
    const harness = await SupervisorHarness.start({
      start: "2026-03-01T12:00:00.300Z",
      sync: { exchangeTickers },
    });
    await harness.advance(100);
    const from = harness.requestCount;
    harness.simulator.setFaults(Fault.missingTick({ to: 30_000 }));
    await harness.advance(120);
    expect(harness.requestsTo("/exchange-ticker", from)).toHaveLength(2);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 60_000);
  });

  it("of a period that every market has ticked in are covered, though the service fails before it ends", async () => {
    const exchangeTickers = { exchanges: all, markets: list("BTC/USD") };
    const harness = await SupervisorHarness.start({
      start: "2026-03-01T12:00:00.300Z",
      sync: { exchangeTickers },
    });
    await harness.advance(100);
    harness.simulator.setFaults(Fault.refuse({ to: 25_000 }));
    await harness.advance(120);
    const [covered] = harness.query(
      "SELECT from_time, to_time, proof FROM coverage WHERE from_time < '2026-03-01T12:01:30'",
    );
    expect(covered).toMatchObject({ to_time: "2026-03-01T12:04:00.000000Z", proof: "rows" });
  });

  it("are subscribed and unsubscribed when the selection changes, without interrupting others", async () => {
    const exchangeTickers = { exchanges: list("Kraken", "Coinbase"), markets: all };
    const harness = await SupervisorHarness.start({ sync: { intraday: ticksOf("BTC"), exchangeTickers } });
    await harness.runUntilSettled();
    const streams = harness.settings.streams as unknown as Record<string, unknown>;
    streams.exchangeTickers = { exchanges: list("Kraken", "Deribit"), markets: all };
    streams.intraday = { ...ticksOf("BTC", "ETH"), LX: all };
    await harness.clock.runUntil(harness.supervisor?.refresh() ?? Promise.resolve());
    await harness.advance(200);
    expect(harness.activity).toBe("following the live feed");
    // The last period of the removed exchange is incomplete.
    expect(
      harness.readGaps("reason <> 'settling' AND NOT (name = 'Coinbase' AND to_ts - from_ts < 30000000)"),
    ).toEqual([]);
    expect(
      harness.query("SELECT name, count(*) AS ranges FROM coverage WHERE index_type IS NULL GROUP BY 1"),
    ).toEqual(["Coinbase", "Deribit", "Kraken"].map((name) => ({ name, ranges: 1 })));
    const newest = harness.query(
      `SELECT exchange, strftime('%M', max(ts) / 1000000, 'unixepoch') AS minute FROM exchange_ticks GROUP BY 1 ORDER BY 1`,
    );
    const minuteOf = Object.fromEntries(newest.map(({ exchange, minute }) => [exchange, Number(minute)]));
    expect(minuteOf.Kraken).toBe(minuteOf.Deribit);
    expect(minuteOf.Coinbase).toBeLessThan(Number(minuteOf.Kraken));
    // All of it over one connection.
    const upgrades = harness.simulator.requests.list.filter(({ target }) => target.startsWith("/v3/stream"));
    expect(upgrades).toHaveLength(1);
    harness.expectMatchesService(harness.clock.now() - 300_000);
  });

  it("A11: survive a single 403, and are lost while it repeats, reason forbidden, for a minute more at most", async () => {
    const harness = await SupervisorHarness.start({
      sync: { marketCap: { every: 300 }, exchangeTickers: { exchanges: list("Kraken"), markets: all } },
      simulator: {
        faults: [Fault.upgradeStatus(503), Fault.status(403, { on: "/exchange-ticker", total: 1 })],
      },
    });
    await harness.advance(300);
    expect(harness.readGaps("state = 'lost'")).toEqual([]);
    expect([...harness.problems.values()].flat()).toEqual([]);

    const denied = ["/exchange-ticker", "/market-cap"].map((path) =>
      Fault.status(403, { on: path, to: 12 * 60_000 }),
    );
    harness.simulator.setFaults(Fault.upgradeStatus(503), ...denied);
    await harness.advance(1800);
    const lost = harness.readGaps("state = 'lost'");
    expect(lost.map(({ stream, reason }) => `${stream} ${reason}`)).toEqual([
      "exchange_ticks forbidden",
      "market_caps forbidden",
    ]);
    expect(lost[0]?.seconds).toBeLessThanOrEqual(13 * 60 + 30);
    expect(lost[1]?.seconds).toBeLessThanOrEqual(15 * 60);
    expect([...harness.problems.values()].flat()).toEqual([]);
  });

  it("without their scope do not stop other streams, and start once the scope is granted", async () => {
    const scopes = ["read:index-ticker", "read:ohlcv"];
    const exchangeTickers = { exchanges: all, markets: list("BTC/USD") };
    const harness = await SupervisorHarness.start({
      sync: { intraday: { ...ticksOf("BTC"), LX: all }, exchangeTickers },
      simulator: { scopes },
      refreshSeconds: 120,
    });
    await harness.runUntilSettled();
    expect(harness.query("SELECT DISTINCT index_type FROM index_ticks WHERE NOT is_settled")).toEqual([
      { index_type: "GWA" },
    ]);
    expect(harness.readGaps("name = 'BTC' AND reason <> 'settling'")).toEqual([]);
    const problems = [...harness.problems.values()].flat().map(({ stream, code }) => `${stream} ${code}`);
    expect(problems).toContain("exchange_ticks forbidden");
    expect(harness.requestCount).toBeLessThan(40);

    harness.simulator.grantScopes([...scopes, "read:exchange-ticker", "read:LX"]);
    await harness.runUntil(
      () => harness.query("SELECT 1 FROM exchange_ticks LIMIT 1").length === 1,
      2 * 3600,
      600,
    );
  });
});
