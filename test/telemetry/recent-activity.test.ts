import { describe, expect, it } from "vitest";
import { RecentErrors, RequestRate } from "../../src/telemetry/recent-activity.ts";
import { TurnedClock } from "../support/manual-clock.ts";

const HOUR = 3_600_000;

describe("requests per second", () => {
  it("are counted second by second, the oldest first, zeros where nothing happened", async () => {
    const clock = new TurnedClock();
    const rate = new RequestRate(clock);
    rate.count();
    rate.count();
    await clock.advance(1_000);
    rate.count();
    expect(rate.perSecond().slice(-2)).toEqual([0, 2]);
    await clock.advance(3_000);
    expect(rate.perSecond().slice(-4)).toEqual([2, 1, 0, 0]);
    await clock.advance(118_000);
    expect(new Set(rate.perSecond())).toEqual(new Set([0]));
  });

  it("are forgotten after a long sleep", async () => {
    const clock = new TurnedClock();
    const rate = new RequestRate(clock);
    rate.count();
    await clock.advance(7 * 24 * HOUR);
    rate.count();
    await clock.advance(1_000);
    expect(rate.perSecond().reduce((a, b) => a + b)).toBe(1);
  });
});

describe("recent errors", () => {
  it("show the newest first, and one that comes again with its count", async () => {
    const clock = new TurnedClock();
    const errors = new RecentErrors(clock);
    const first = clock.now();
    errors.note({ where: "/ohlcv", code: "http_503", message: "503\n  Service   Unavailable" });
    await clock.advance(1_000);
    errors.note({ where: "market_caps", code: "forbidden", message: "no scope" });
    errors.note({ where: "/ohlcv", code: "http_503", message: "503 Service Unavailable" });
    expect(errors.list()).toEqual([
      {
        where: "/ohlcv",
        code: "http_503",
        message: "503 Service Unavailable",
        count: 2,
        firstAt: first,
        lastAt: first + 1_000,
      },
      expect.objectContaining({ where: "market_caps", count: 1 }),
    ]);
  });

  it("stay few and short", () => {
    const errors = new RecentErrors(new TurnedClock());
    for (let i = 0; i < 100; i++)
      errors.note({ where: "x", code: "y", message: `${i} ${"z".repeat(9_999)}` });
    expect(errors.list()).toHaveLength(20);
    expect(errors.list()[0]?.message).toMatch(/^99 z{297}$/);
  });
});
