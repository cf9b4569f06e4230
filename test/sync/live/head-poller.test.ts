import { describe, expect, it } from "vitest";
import { KeeperUnderTest } from "../../support/sync/supervisor-harness.ts";

const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const list = (...names: string[]) => ({ kind: "list", names }) as const;
const sync = {
  ohlcv: { GWA: list("BTC", "ETH"), MWA: none, LX: none },
  intraday: { GWA: list("BTC", "ETH", "SOL"), MWA: none, LX: all, days: 1 },
  exchangeTickers: false,
  marketCap: false,
  derivatives: false,
};
const idOf = (target: string) => new URL(target, "http://x").searchParams.get("indexId");

describe("what is followed live", () => {
  it("only awaits its confirmation: hourly, each series at its own moment; bars once their day has closed", async () => {
    const start = "2026-03-01T22:40:07Z";
    const under = await KeeperUnderTest.start({ sync, start, refreshSeconds: 120 });
    await under.settled();
    expect(under.activity).toBe("following the live feed");
    const from = under.requests;
    const perTenMinutes: number[] = [];
    for (let minute = 0; minute < 140; minute += 10) {
      expect(under.gaps("stream = 'index_ticks' AND reason <> 'settling'")).toEqual([]);
      const before = under.requests;
      await under.pass(600);
      perTenMinutes.push(under.asked("/index-ticker", before).length);
    }
    // The hourly lookups learn the liquid indices by a page that names no index.
    const ticks = under.asked("/index-ticker", from).filter(({ target }) => idOf(target) !== null);
    const byLine = Map.groupBy(ticks, ({ target }) => idOf(target));
    expect(byLine.size).toBe(6);
    for (const own of byLine.values()) expect([2, 3]).toContain(own.length);
    expect(Math.max(...perTenMinutes)).toBeLessThanOrEqual(4);

    const bars = under.asked("/ohlcv", from);
    expect(new Set(bars.map(({ target }) => idOf(target))).size).toBe(2);
    const [first = 0, second = 0, ...more] = bars.map(({ at }) => at);
    expect(more).toEqual([]);
    expect(first).toBeGreaterThan(Date.parse("2026-03-02T00:04:00Z"));
    expect(second - first).toBeGreaterThan(60_000);
    expect(under.query("SELECT 1 FROM ohlcv WHERE day = '2026-03-01' AND is_final")).toHaveLength(2);
    expect(under.gaps("reason <> 'settling'")).toEqual([]);
    under.expectTruth(under.clock.now() - 5_400_000);
    expect(under.failures).toEqual([]);
  });

  it("C12: the hourly page also shows what the service has corrected or added late, without another request", async () => {
    const under = await KeeperUnderTest.start({
      sync: { ...sync, ohlcv: false, intraday: { GWA: list("BTC"), MWA: none, LX: none, days: 1 } },
      refreshSeconds: 120,
      simulator: {
        quirks: { corrections: { perMille: 400, minutes: 28 }, late: { perMille: 50, seconds: 1680 } },
      },
    });
    await under.settled();
    const from = under.requests;
    await under.pass(5 * 3600);
    expect(under.asked("/index-ticker", from).length).toBeLessThanOrEqual(7);
    // Seen at the latest by the second page after it: an hour and a half, and the half hour itself.
    under.expectTruth(under.clock.now() - 2 * 3_600_000);
    const late = under.query("SELECT count(*) AS n FROM revisions WHERE changed_at > '2026-03-01T13'");
    expect(Number(late[0]?.n)).toBeGreaterThan(5);
    expect(under.failures).toEqual([]);
  });

  it("a tick that the feed leaves out in silence is noticed by the next one, and fetched within minutes", async () => {
    const under = await KeeperUnderTest.start({ sync: { ...sync, ohlcv: false } });
    await under.settled();
    await under.pass(400);
    under.simulator.setFaults("ws missing-tick query=name=ELX total=1");
    await under.pass(35);
    under.simulator.setFaults("");
    const stored = () => under.query("SELECT 1 FROM index_tick_rows").length;
    const from = under.requests;
    const before = stored();
    await under.pass(125);
    const asked = under.asked("/index-ticker", from).map(({ target }) => idOf(target));
    const [{ id } = {}] = under.query("SELECT index_id AS id FROM series WHERE name = 'ELX'");
    expect(asked).toEqual([id]);
    // Six lines, four ticks each meanwhile, and the one that was missing.
    expect(stored() - before).toBe(6 * 4 + 1);
    expect(under.failures).toEqual([]);
  });

  it("a tick that comes late raises no question", async () => {
    const under = await KeeperUnderTest.start({ sync: { ...sync, ohlcv: false } });
    await under.settled();
    await under.pass(400);
    const from = under.requests;
    under.simulator.setFaults("ws late-tick by=40s p=0.3");
    await under.pass(1200);
    // Each of six lines at its hourly moment.
    expect(under.asked("/index-ticker", from).length).toBeLessThanOrEqual(6);
    under.simulator.setFaults("");
  });

  it("an index that ticks less often than the others is not asked for at each of its ticks", async () => {
    const under = await KeeperUnderTest.start({
      sync: { ...sync, ohlcv: false, intraday: { GWA: list("BTC"), MWA: none, LX: none, days: 1 } },
      simulator: { quirks: { missingPerMille: 120 } },
    });
    await under.settled();
    const from = under.requests;
    await under.pass(3 * 3600);
    // Beside the questions whether a silence is one, which ask for a single tick.
    const looks = under.asked("/index-ticker", from).filter(({ target }) => !target.endsWith("size=1"));
    expect(looks.length).toBeLessThanOrEqual(10);
    under.expectTruth(under.clock.now() - 5_400_000);
  });
});
