import { describe, expect, it } from "vitest";
import { KeeperUnderTest } from "./keeper-under-test.ts";

const HOUR = 3600;
const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const list = (...names: string[]) => ({ kind: "list", names }) as const;
const quiet = { exchangeTickers: false, marketCap: false, derivatives: false };
const indices = {
  ...quiet,
  ohlcv: { GWA: list("BTC", "ETH"), MWA: none, LX: none },
  intraday: { GWA: list("BTC", "ETH", "SOL"), MWA: none, LX: all, days: 1 },
};

describe("the heads of what is followed live", () => {
  it("only await their confirmation: once an hour each, every one at its own moment", async () => {
    const under = await KeeperUnderTest.start({ sync: indices });
    await under.settled();
    expect(under.activity).toBe("following the live feed");
    expect(under.gaps("reason <> 'settling'")).toEqual([]);
    const from = under.requests;
    const moments: number[] = [];
    for (let minute = 0; minute < 4 * 60; minute++) {
      const before = under.requests;
      await under.pass(60);
      moments.push(under.requests - before);
      if (minute % 20 === 0) expect(under.gaps("reason <> 'settling'")).toEqual([]);
    }
    // Six lines, four hours; the lookups, which are refreshed hourly too, stand apart.
    const asked = under.asked("/index-ticker", from).filter((target) => target.includes("indexId"));
    const byLine = Map.groupBy(asked, (target) => new URL(target, "http://x").searchParams.get("indexId"));
    expect(byLine.size).toBe(6);
    for (const own of byLine.values()) expect([3, 4, 5]).toContain(own.length);
    expect(under.asked("/ohlcv", from)).toEqual([]);
    expect(Math.max(...moments)).toBeLessThanOrEqual(8);
    under.expectTruth(under.clock.now() - 2 * HOUR * 1000);
    expect(under.failures).toEqual([]);
  });
});
