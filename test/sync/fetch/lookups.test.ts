import { expect, it } from "vitest";
import { KeeperUnderTest } from "../../support/sync/supervisor-harness.ts";

const sync = {
  ohlcv: false,
  intraday: { GWA: { kind: "list", names: ["BTC"] }, MWA: { kind: "none" }, LX: { kind: "none" }, days: 1 },
  exchangeTickers: false,
  marketCap: { every: 60 },
  derivatives: false,
};

it("a lookup that fails from the first start on holds back nothing that can do without it", async () => {
  const under = await KeeperUnderTest.start({
    refreshSeconds: 300,
    sync,
    simulator: { faults: "GET /exchange status 500" },
  });
  const stored = () => under.query("SELECT DISTINCT name FROM index_ticks");
  await under.until(() => stored().length > 0, 1200, 10);
  expect(stored()).toEqual([{ name: "BTC" }]);
  expect(under.problems.get("lookups")).toMatchObject([{ stream: "exchanges", code: "server_failure" }]);
});

it("a lookup that fails while others are answered is told, and asked for again in minutes rather than at the next hour", async () => {
  const under = await KeeperUnderTest.start({
    refreshSeconds: 300,
    sync,
  });
  const problems = (part: string) =>
    (under.problems.get(part) ?? []).map(({ stream, code }) => `${stream} ${code}`);
  await under.until(() => under.isFilled);
  under.simulator.setFaults("GET /exchange status 500");
  // Told while it is still tried, and again once it was given up for this time.
  await under.until(() => problems("lookups under way").length > 0, 4000, 10);
  await under.until(() => problems("lookups").length > 0, 1800, 10);
  expect(problems("lookups")).toEqual(["exchanges server_failure"]);
  expect(problems("lookups under way")).toEqual([]);
  const [from, givenUpAt] = [under.requests, under.clock.now()];
  await under.pass(2 * 3600);
  const rounds = under.asked("/market", from);
  expect((rounds[0]?.at ?? 0) - givenUpAt).toBeLessThan(61_000);
  // Each pause is longer than the one before: a service that is out of order for long is not asked all the time.
  expect(rounds.length).toBeGreaterThanOrEqual(5);
  expect(rounds.length).toBeLessThanOrEqual(7);

  under.simulator.setFaults("");
  await under.until(() => problems("lookups").length === 0, 4000, 10);
  const back = under.requests;
  await under.pass(3500);
  expect(under.asked("/asset", back)).toEqual([]);
});
