import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { daysUntilFull, SizeHistory } from "../../src/telemetry/disk-forecast.ts";
import { RecentErrors, RequestRate } from "../../src/telemetry/recent-activity.ts";
import { TurnedClock } from "../support/turned-clock.ts";

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

describe("the forecast of a full disk", () => {
  const sizes = (...bytes: number[]) => bytes.map((size, i) => ({ at: i * HOUR, bytes: size }));

  it("says nothing before an hour is known, and never for a warehouse that does not grow", () => {
    expect(daysUntilFull([], 1)).toBeUndefined();
    expect(daysUntilFull(sizes(5), 1)).toBeUndefined();
    expect(daysUntilFull(sizes(5, 5, 5), 1)).toBe(Number.POSITIVE_INFINITY);
    expect(daysUntilFull(sizes(5, 4, 3), 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it("divides what is free by the growth, whatever the sizes and the pace", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.integer({ min: 1, max: 1e12 }),
        fc.integer({ min: 2, max: 40 }),
        (perHour, free, hours) => {
          const samples = sizes(...Array.from({ length: hours + 1 }, (_, i) => 1e9 + i * perHour));
          expect((daysUntilFull(samples, free) ?? 0) / (free / perHour / 24)).toBeCloseTo(1, 9);
        },
      ),
    );
  });

  it("is not misled by a first backfill that is over, nor by a file that grows in steps", () => {
    const afterBackfill = sizes(0, 1e9, ...Array.from({ length: 20 }, (_, i) => 1e9 + i * 10));
    expect(daysUntilFull(afterBackfill, 2400)).toBeCloseTo(10, 0);
    const inSteps = sizes(...Array.from({ length: 48 }, (_, i) => Math.floor(i / 6) * 60));
    expect(daysUntilFull(inSteps, 2400)).toBeCloseTo(10, 0);
  });

  it("keeps two days of sizes, ten minutes apart", () => {
    const history = new SizeHistory();
    for (let minute = 0; minute < 6 * 24 * 60; minute++) {
      const bytes = Math.min(minute, 3 * 24 * 60) * 1_000;
      history.note({ at: minute * 60_000, bytes });
    }
    expect(history.daysUntilFull(1e9)).toBe(Number.POSITIVE_INFINITY);
  });
});
