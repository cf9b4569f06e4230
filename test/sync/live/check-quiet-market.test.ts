import { expect, it, onTestFinished } from "vitest";
import { MICROS_PER_SECOND, parseInstant } from "../../../src/model/time.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";
import { isQuiet } from "../../../src/sync/live/check-quiet-market.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf } from "../../support/service/client-harness.ts";

it("E13: a market is quiet only when a fresh and readable answer says so", async () => {
  const clock = new TurnedClock("2026-03-01T12:00:07Z");
  const simulator = await startSimulator({ clock, size: { assets: 6, markets: 8, exchanges: 3 } });
  const { client } = clientOf(simulator.baseUrl, clock, {
    clientId: simulator.clientId,
    readSecret: async () => simulator.clientSecret,
  });
  onTestFinished(async () => {
    await client.close();
    await simulator.stop();
  });
  const exchangeId = simulator.universe.exchanges[0]?.id;
  const newest = parseInstant("2026-03-01T12:00:00Z") ?? 0;
  const ask = async (lastTick: number | undefined, faults = "") => {
    simulator.setFaults(faults);
    const intake = { client, clock, signal: new AbortController().signal };
    const answer = isQuiet(intake, { source: "exchange", exchangeId }, lastTick);
    return clock.runUntil(answer.catch((error: Error) => error.message));
  };
  expect(await ask(newest)).toBe(true);
  expect(await ask(newest - 30 * MICROS_PER_SECOND)).toBe(false);
  expect(await ask(undefined)).toBe(false);
  expect(await ask(undefined, "GET /exchange-ticker shrink by=1")).toBe(true);

  expect(await ask(newest, "GET /exchange-ticker envelope no-content")).toMatch("no content");
  expect(await ask(newest, "GET /exchange-ticker html")).toMatch("not JSON");
  expect(await ask(newest, "GET /exchange-ticker stale age=10m")).toMatch("cache");
  expect(await ask(newest, "GET /exchange-ticker shrink by=1")).toMatch("no tick at all");
  expect(await ask(newest, "GET /exchange-ticker set field=timestamp value=soon")).toMatch("no tick at all");
});
