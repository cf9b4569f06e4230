import { describe, expect, it } from "vitest";
import { KeeperUnderTest } from "../../support/sync/supervisor-harness.ts";

const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const list = (...names: string[]) => ({ kind: "list", names }) as const;
const noIndices = { ohlcv: false, intraday: false, marketCap: false, derivatives: false };
const oneIndex = { GWA: list("BTC"), MWA: none, LX: none, days: 1 };

describe("exchange tickers", () => {
  it("are heard live and not polled; each period that was heard is covered, per exchange", async () => {
    const exchangeTickers = { exchanges: list("Kraken", "Coinbase"), markets: list("BTC/USD") };
    const under = await KeeperUnderTest.start({ sync: { ...noIndices, exchangeTickers } });
    await under.pass(20);
    const from = under.requests;
    await under.pass(600);
    expect(under.asked("/exchange-ticker", from)).toEqual([]);
    expect(under.gaps("reason <> 'settling'")).toEqual([]);
    expect(under.query("SELECT name, from_time, to_time FROM coverage ORDER BY name")).toEqual(
      ["Coinbase", "Kraken"].map((name) => ({
        name,
        from_time: "2026-03-01T12:00:00.000000Z",
        // The period that is under way counts once the next one speaks.
        to_time: "2026-03-01T12:10:00.000000Z",
      })),
    );
    // Other markets of the exchanges were not asked for.
    expect(under.query("SELECT DISTINCT pair FROM exchange_ticks")).toEqual([{ pair: "BTC/USD" }]);
    expect(under.query("SELECT count(*) AS ticks FROM exchange_ticks")).toEqual([{ ticks: 2 * 21 }]);
  });

  it("whose selection changes are subscribed and unsubscribed without a break of the others", async () => {
    const exchangeTickers = { exchanges: list("Kraken", "Coinbase"), markets: all };
    const under = await KeeperUnderTest.start({
      sync: { ...noIndices, intraday: oneIndex, exchangeTickers },
    });
    await under.settled();
    const streams = under.settings.streams as unknown as Record<string, unknown>;
    streams.exchangeTickers = { exchanges: list("Kraken", "Deribit"), markets: all };
    streams.intraday = { ...oneIndex, GWA: list("BTC", "ETH"), LX: all };
    await under.clock.runUntil(under.keeper?.refresh() ?? Promise.resolve());
    await under.pass(200);
    expect(under.activity).toBe("following the live feed");
    // Of the one that ended, the period under way was heard in part.
    expect(
      under.gaps("reason <> 'settling' AND NOT (name = 'Coinbase' AND to_ts - from_ts < 30000000)"),
    ).toEqual([]);
    expect(
      under.query("SELECT name, count(*) AS ranges FROM coverage WHERE index_type IS NULL GROUP BY 1"),
    ).toEqual(["Coinbase", "Deribit", "Kraken"].map((name) => ({ name, ranges: 1 })));
    const newest = under.query(
      `SELECT exchange, strftime('%M', max(ts) / 1000000, 'unixepoch') AS minute FROM exchange_ticks GROUP BY 1 ORDER BY 1`,
    );
    const minuteOf = Object.fromEntries(newest.map(({ exchange, minute }) => [exchange, Number(minute)]));
    expect(minuteOf.Kraken).toBe(minuteOf.Deribit);
    expect(minuteOf.Coinbase).toBeLessThan(Number(minuteOf.Kraken));
    // One connection carried all of it.
    const dialled = under.simulator.requests.list.filter(({ target }) => target.startsWith("/v3/stream"));
    expect(dialled).toHaveLength(1);
    under.expectTruth(under.clock.now() - 300_000);
  });

  it("that the profile does not allow stop nothing else, and come when it does", async () => {
    const scopes = ["read:index-ticker", "read:ohlcv"];
    const exchangeTickers = { exchanges: all, markets: list("BTC/USD") };
    const under = await KeeperUnderTest.start({
      sync: { ...noIndices, intraday: { ...oneIndex, LX: all }, exchangeTickers },
      simulator: { scopes },
      refreshSeconds: 120,
    });
    await under.settled();
    expect(under.query("SELECT DISTINCT index_type FROM index_ticks WHERE NOT is_settled")).toEqual([
      { index_type: "GWA" },
    ]);
    expect(under.gaps("name = 'BTC' AND reason <> 'settling'")).toEqual([]);
    const told = [...under.problems.values()].flat().map(({ stream, code }) => `${stream} ${code}`);
    expect(told).toContain("exchange_ticks forbidden");
    expect(under.requests).toBeLessThan(40);

    under.simulator.grantScopes([...scopes, "read:exchange-ticker", "read:LX"]);
    await under.until(() => under.query("SELECT 1 FROM exchange_ticks LIMIT 1").length === 1, 2 * 3600, 600);
    expect(under.failures).toEqual([]);
  });
});
