import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { seed } from "../../support/seed.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { all, list, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = {
  intraday: ticksOf("BTC", "ETH", "SOL", "XRP"),
  exchangeTickers: { exchanges: list("Kraken"), markets: all },
  marketCap: { every: 2 },
};
const REFRESH_SECONDS = 2;
/** A few minutes of records to fill before the polls are watched. */
const start = "2026-03-01T00:05:07Z";

/** The longest time in seconds between two requests of the same series or list. */
async function findLongestWait(harness: SupervisorHarness, seconds: number): Promise<number> {
  await harness.runUntil(() => harness.isFilled);
  await harness.advance(10);
  const count = harness.requestCount;
  const from = harness.clock.now();
  await harness.advance(seconds);
  const to = harness.clock.now();
  const heads = harness.requestsTo("/index-ticker", count);
  const byIndex = Map.groupBy(heads, ({ target }) => new URL(target, "http://x").searchParams.get("indexId"));
  expect(byIndex.size).toBe(4);
  const lists = ["/market-cap", "/exchange-ticker"].map((path) => harness.requestsTo(path, count));
  const waits = [...byIndex.values(), ...lists].flatMap((requests) => {
    const times = [from, ...requests.map(({ at }) => at), to];
    return times.slice(1).map((at, n) => at - (times[n] ?? at));
  });
  return Math.max(...waits) / 1000;
}

describe("due polls", () => {
  it("H7: none waits longer than two periods, however time passes between two readings of the clock", async () => {
    const random = seededRandom(seed);
    const maxCreepMs = random() * 4;
    const harness = await SupervisorHarness.start({
      sync,
      refreshSeconds: REFRESH_SECONDS,
      start,
      simulator: { faults: [Fault.upgradeStatus(503)] },
      creepMs: () => random() * maxCreepMs,
    });
    expect(await findLongestWait(harness, 30)).toBeLessThan(2 * REFRESH_SECONDS + 0.5);
  });

  it("H7: a slow response delays only the poll after it, and passes over no period", async () => {
    const faults = [
      Fault.upgradeStatus(503),
      // Ends in the first moments of the next period, and in the middle of it.
      Fault.latency(1700, { on: "/market-cap" }),
      Fault.latency(2600, { on: "/exchange-ticker" }),
    ];
    const harness = await SupervisorHarness.start({
      sync,
      refreshSeconds: REFRESH_SECONDS,
      start,
      simulator: { faults },
    });
    expect(await findLongestWait(harness, 30)).toBeLessThan(1.5 * REFRESH_SECONDS);
  });
});
