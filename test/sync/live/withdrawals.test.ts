import { expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = { intraday: ticksOf("BTC", "ETH") };

it("H5: a mass withdrawal while the daemon runs is asked again until it is believed; the head and the other series stay current", async () => {
  const harness = await SupervisorHarness.start({ mustRepeatClaims: true, sync });
  await harness.runUntilSettled();
  await harness.advance(1800);
  const btc = harness.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id;
  harness.simulator.setFaults(
    Fault.withdraw("2026-03-01T01:29:30Z", "2026-03-01T01:59:30Z", {
      on: "/index-ticker",
      query: { indexId: btc },
    }),
  );
  const unconfirmed = () => harness.readGaps("reason = 'withdrawal unconfirmed'");
  // The hourly page goes two hours back.
  await harness.runUntil(() => unconfirmed().length > 0, 3700, 10);
  const requestsBefore = harness.requestsTo("/index-ticker").length;
  expect(unconfirmed()).toMatchObject([{ name: "BTC", seconds: 1800 }]);
  const seen: number[] = [];
  await harness.runUntil(
    () => {
      seen.push(
        Math.max(0, ...harness.readGaps("reason <> 'withdrawal unconfirmed'").map(({ age }) => Number(age))),
      );
      return unconfirmed().length === 0;
    },
    1800,
    10,
  );
  // No other gap is older than what one hourly poll leaves to settle.
  expect(Math.max(...seen)).toBeLessThan(4000);
  expect(harness.requestsTo("/index-ticker").length - requestsBefore).toBeLessThan(60);
  expect(harness.query("SELECT count(*) AS n FROM revisions WHERE after IS NULL")).toEqual([{ n: 60 }]);
  expect(harness.query("SELECT rows, accepted_at IS NULL AS open FROM pending_claims")).toEqual([
    { rows: 60, open: 0 },
  ]);
  const told = harness.logged.filter(({ message }) => message.startsWith("mass withdrawal"));
  expect(told.map(({ message }) => message)).toEqual([
    "mass withdrawal unconfirmed",
    "mass withdrawal believed",
  ]);
  await harness.advance(1200);
  expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
  expect([...harness.problems.values()].flat()).toEqual([]);
});
