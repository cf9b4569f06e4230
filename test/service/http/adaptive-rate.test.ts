import { beforeEach, describe, expect, it } from "vitest";
import { AdaptiveRate } from "../../../src/service/http/adaptive-rate.ts";
import { ManualClock } from "../../support/manual-clock.ts";

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

/** Sends one request after another as fast as the rate allows; `accepts` is the service. */
async function send(rate: AdaptiveRate, requests: number, accepts: (now: number) => boolean): Promise<void> {
  for (let at = 0; at < requests; at++) {
    const waitMs = Math.max(0, rate.nextStartAt - clock.monotonic());
    await clock.advance(waitMs);
    rate.recordStart(waitMs > 0);
    const startedAt = clock.monotonic();
    await clock.advance(5);
    if (accepts(startedAt)) rate.recordAccepted(startedAt);
    else rate.recordRejected(startedAt, 0);
  }
}

const never = () => false;
const always = () => true;

describe("the adaptive rate", () => {
  it("B17: has no limit until several requests in a row are rejected", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    await send(rate, 500, always);
    expect([rate.perSecond, clock.monotonic()]).toEqual([undefined, 2_500]);
    await send(rate, 2, never);
    await send(rate, 1, always);
    expect(rate.learned).toBeUndefined();
    await send(rate, 3, never);
    expect(rate.learned).toBeLessThan(200);
  });

  it("B17: rejections with Retry-After show a limit only if they come together, not before and after a pause", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    /** Requests in flight together, of which the last to be answered are rejected; then the pause passes. */
    const sendTogether = async (accepted: number, rejected: number) => {
      const startedAt = clock.monotonic();
      for (let at = 0; at < accepted + rejected; at++) rate.recordStart(false);
      await clock.advance(20);
      for (let at = 0; at < accepted; at++) rate.recordAccepted(startedAt);
      for (let at = 0; at < rejected; at++) rate.recordRejected(startedAt, 1_000);
      await clock.advance(1_000);
    };
    await sendTogether(8, 0);
    await sendTogether(5, 3);
    await sendTogether(0, 1);
    expect(rate.learned).toBeUndefined();
    await sendTogether(4, 4);
    expect(rate.learned).toBeLessThan(8);
  });

  it("B17: eight rejections in a row show a limit, although the service's pauses lie between them", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    await send(rate, 100, always);
    const learned: boolean[] = [];
    for (let at = 0; at < 8; at++) {
      await clock.advance(Math.max(0, rate.nextStartAt - clock.monotonic()));
      rate.recordStart(false);
      const startedAt = clock.monotonic();
      await clock.advance(5);
      rate.recordRejected(startedAt, 1_000);
      learned.push(rate.learned !== undefined);
    }
    expect(learned).toEqual([...Array(7).fill(false), true]);
  });

  it("B17: a configured rate is the upper bound of the learned one", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 50 });
    expect([rate.perSecond, rate.learned]).toEqual([50, undefined]);
    await send(rate, 100, always);
    expect(clock.monotonic()).toBeGreaterThan(1_900);
    await send(rate, 3, never);
    expect(rate.perSecond).toBeLessThan(50);
    for (let at = 0; at < 600; at++) await send(rate, 1, always);
    expect(rate.perSecond).toBe(50);
  });

  it("B17: an unused limit does not grow", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    await send(rate, 3, never);
    const learned = rate.learned;
    await clock.advance(3_600_000);
    expect(rate.learned).toBe(learned);
  });

  it("B17: a limit that is gone is forgotten", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    await send(rate, 100, always);
    await send(rate, 3, never);
    expect(rate.learned).toBeDefined();
    // One request at a time takes 5 ms, so no more than 200 per second are sent.
    await send(rate, 6_000, always);
    expect(rate.learned).toBeUndefined();
  });

  it("B3: rejections in a row are followed by longer and longer silence, at most half a minute", async () => {
    const rate = new AdaptiveRate({ clock, maxPerSecond: 0 });
    const silences: number[] = [];
    for (let at = 0; at < 14; at++) {
      await send(rate, 1, never);
      silences.push(rate.nextStartAt - clock.monotonic());
    }
    expect(silences[0]).toBe(1);
    for (const [n, ms] of silences.entries()) expect(ms).toBeGreaterThan((silences[n - 1] ?? 0) - 1);
    expect(silences.at(-1)).toBeCloseTo(30_000);
    await send(rate, 1, always);
    await send(rate, 1, never);
    expect(rate.nextStartAt - clock.monotonic()).toBeLessThan(12_000);
  });
});
