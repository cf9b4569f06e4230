import { beforeEach, describe, expect, it } from "vitest";
import { type Random, seededRandom } from "../../../src/runtime/backoff.ts";
import { AdaptiveConcurrency } from "../../../src/service/http/adaptive-concurrency.ts";
import { ManualClock } from "../../support/manual-clock.ts";

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

/** Rounds of 100 ms in which as many requests are in flight as allowed. Returns the limit of each round. */
async function runRounds(
  concurrency: AdaptiveConcurrency,
  rounds: number,
  fails: (inFlight: number) => boolean,
): Promise<number[]> {
  const limits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await clock.advance(1);
    const { limit } = concurrency;
    const startedAt = clock.monotonic();
    await clock.advance(99);
    for (let inFlight = 1; inFlight <= limit; inFlight++) {
      if (fails(inFlight)) concurrency.recordFailure(startedAt);
      else concurrency.recordSuccess(startedAt);
    }
    limits.push(limit);
  }
  return limits;
}

const create = () => new AdaptiveConcurrency({ clock, maxConcurrency: 8, onChange: () => {} });
const failAtRandom = (share: number, random: Random) => () => random() < share;

describe("the adaptive concurrency", () => {
  it("B17: finds the number of requests that the service bears, and returns to it after each attempt at more", async () => {
    const concurrency = create();
    await runRounds(concurrency, 100, (inFlight) => inFlight > 2);
    const limits = await runRounds(concurrency, 300, (inFlight) => inFlight > 2);
    expect(concurrency.isOverloaded).toBe(true);
    expect(limits.filter((limit) => limit === 2).length).toBeGreaterThan(270);
    expect(Math.max(...limits)).toBe(3);
  });

  it("doubles the limit each round at the start, until a request fails or is rejected", async () => {
    const never = () => false;
    const whole = new AdaptiveConcurrency({ clock, maxConcurrency: 40, onChange: () => {} });
    expect(await runRounds(whole, 6, never)).toEqual([2, 2, 3, 6, 12, 24]);
    for (const end of ["recordRejected", "recordFailure", "recordTimeout"] as const) {
      const concurrency = new AdaptiveConcurrency({ clock, maxConcurrency: 40, onChange: () => {} });
      await runRounds(concurrency, 3, never);
      concurrency[end](clock.monotonic());
      const limits = await runRounds(concurrency, 5, never);
      expect(Math.max(...limits), end).toBeLessThanOrEqual(12);
    }
  });

  it("B17: returns to the maximum once the service bears more", async () => {
    const concurrency = create();
    await runRounds(concurrency, 100, (inFlight) => inFlight > 2);
    await runRounds(concurrency, 100, () => false);
    expect([concurrency.limit, concurrency.isOverloaded]).toEqual([8, false]);
  });

  it.each([0.17, 0.25, 0.5, 0.75])("B17: failures of %d at random do not lower it", async (share) => {
    const concurrency = create();
    const fails = failAtRandom(share, seededRandom(7));
    await runRounds(concurrency, 100, fails);
    const limits = await runRounds(concurrency, 1_000, fails);
    const mean = limits.reduce((sum, limit) => sum + limit, 0) / limits.length;
    expect(mean).toBeGreaterThan(7.5);
  });

  it("B12: a timeout halves it", async () => {
    const concurrency = create();
    await runRounds(concurrency, 100, () => false);
    concurrency.recordTimeout(clock.monotonic());
    expect(concurrency.limit).toBe(4);
  });
});
