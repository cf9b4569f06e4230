import { describe, expect, it } from "vitest";
import { KeeperUnderTest } from "./keeper-under-test.ts";

const all = { kind: "all" } as const;
const none = { kind: "none" } as const;
const list = (...names: string[]) => ({ kind: "list", names }) as const;
const indices = {
  ohlcv: false,
  intraday: { GWA: list("BTC", "ETH", "SOL"), MWA: none, LX: all, days: 1 },
  exchangeTickers: false,
  marketCap: false,
  derivatives: false,
};

const following = async () => {
  const under = await KeeperUnderTest.start({ sync: indices });
  await under.settled();
  await under.pass(1200);
  return under;
};

describe("a break of the live feed", () => {
  it("that is short is filled at once, one page for each line that missed something", async () => {
    const under = await following();
    const from = under.requests;
    under.simulator.setFaults("ws drop-connection 1006 in=1s total=1\nws upgrade-status 503 to=150s");
    await under.pass(40);
    expect(under.gaps("reason = 'pending'").length).toBeGreaterThan(0);
    under.simulator.setFaults("");
    await under.until(() => under.activity === "following the live feed" && under.gaps("reason <> 'settling'").length === 0, 200);
    expect(under.asked("/index-ticker", from).length).toBeLessThan(6 * 12);
    await under.pass(130);
    expect(under.gaps("reason <> 'settling'")).toEqual([]);
    under.expectTruth(under.clock.now() - 400_000);
  });

  it("that mutes ticks while the socket lives is noticed by the ticks, and filled", async () => {
    const under = await following();
    under.simulator.setFaults("ws mute");
    await under.pass(200);
    expect(under.gaps("reason = 'pending'").length).toBeGreaterThan(0);
    under.simulator.setFaults("");
    await under.until(() => under.gaps("reason <> 'settling'").length === 0, 1500);
    await under.pass(130);
    expect(under.gaps("reason <> 'settling'")).toEqual([]);
    under.expectTruth(under.clock.now() - 1800_000);
  });
});
