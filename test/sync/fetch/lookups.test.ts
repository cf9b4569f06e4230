import { expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = { intraday: ticksOf("BTC"), marketCap: { every: 60 } };

it("a lookup that fails from the start does not block streams that do not need it", async () => {
  const harness = await SupervisorHarness.start({
    refreshSeconds: 300,
    sync,
    simulator: { faults: [Fault.status(500, { on: "/exchange" })] },
  });
  const stored = () => harness.query("SELECT DISTINCT name FROM index_ticks");
  await harness.runUntil(() => stored().length > 0, 1200, 10);
  expect(stored()).toEqual([{ name: "BTC" }]);
  expect(harness.problems.get("lookups")).toMatchObject([{ stream: "exchanges", code: "endpoint_failing" }]);
});

it("a lookup that fails while others work is reported and retried within minutes, not at the next hourly refresh", async () => {
  const harness = await SupervisorHarness.start({
    refreshSeconds: 900,
    sync: { ...sync, marketCap: { every: 900 } },
  });
  const problems = (part: string) =>
    (harness.problems.get(part) ?? []).map(({ stream, code }) => `${stream} ${code}`);
  await harness.runUntil(() => harness.isFilled);
  harness.simulator.setFaults(Fault.status(500, { on: "/exchange" }));
  // Reported while it is being retried, and again after it was given up.
  await harness.runUntil(() => problems("pending lookups").length > 0, 4000, 10);
  await harness.runUntil(() => problems("lookups").length > 0, 1800, 10);
  expect(problems("lookups")).toEqual(["exchanges endpoint_failing"]);
  expect(problems("pending lookups")).toEqual([]);
  const [requestsBefore, givenUpAt] = [harness.requestCount, harness.clock.now()];
  await harness.advance(2 * 3600);
  // Each round begins with the assets.
  const rounds = harness.requestsTo("/asset", requestsBefore);
  expect((rounds[0]?.at ?? 0) - givenUpAt).toBeLessThan(61_000);
  // The retry delay doubles, so a long outage causes few requests.
  expect(rounds.length).toBeGreaterThanOrEqual(5);
  expect(rounds.length).toBeLessThanOrEqual(7);

  harness.simulator.setFaults();
  await harness.runUntil(() => problems("lookups").length === 0, 4000, 10);
  const recoveredAt = harness.requestCount;
  await harness.advance(3500);
  expect(harness.requestsTo("/asset", recoveredAt)).toEqual([]);
});
