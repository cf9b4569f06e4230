import { expect, it, onTestFinished } from "vitest";
import { MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { checkQuietMarket } from "../../../src/sync/live/follower.ts";
import { Fault } from "../../simulator/faults.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient } from "../../support/service/client-harness.ts";

it("E13: a market is quiet only if a fresh and readable response says so", async () => {
  const clock = new ManualClock("2026-03-01T12:00:07Z");
  const simulator = await startSimulator({ clock, size: { assets: 6, markets: 8, exchanges: 3 } });
  const { client } = createTestClient(simulator.baseUrl, clock, {
    clientId: simulator.clientId,
    readSecret: async () => simulator.clientSecret,
  });
  onTestFinished(async () => {
    await client.close();
    await simulator.stop();
  });
  const exchangeId = simulator.universe.exchanges[0]?.id;
  const newest = parseTimestamp("2026-03-01T12:00:00Z") ?? 0;
  const check = async (lastTick: number | undefined, ...faults: Fault[]) => {
    simulator.setFaults(...faults);
    const context = { client, clock, signal: new AbortController().signal };
    const result = checkQuietMarket(context, { source: "exchange", exchangeId }, lastTick);
    return clock.runUntil(result.catch((error: Error) => error.message));
  };
  expect(await check(newest)).toBe(true);
  expect(await check(newest - 30 * MICROS_PER_SECOND)).toBe(false);
  expect(await check(undefined)).toBe(false);
  expect(await check(undefined, Fault.shrink(1, { on: "/exchange-ticker" }))).toBe(true);

  expect(await check(newest, Fault.envelope("no-content", { on: "/exchange-ticker" }))).toMatch("no list");
  expect(await check(newest, Fault.html({ on: "/exchange-ticker" }))).toMatch("not JSON");
  expect(await check(newest, Fault.stale(10 * 60_000, { on: "/exchange-ticker" }))).toMatch("cache");
  expect(await check(newest, Fault.shrink(1, { on: "/exchange-ticker" }))).toMatch("no tick at all");
  expect(await check(newest, Fault.set("timestamp", "soon", { on: "/exchange-ticker" }))).toMatch(
    "no tick at all",
  );
});
