import { describe, expect, it } from "vitest";
import { RecentErrors, RequestRate } from "../../src/telemetry/recent-activity.ts";
import { ManualClock } from "../support/manual-clock.ts";

const HOUR = 3_600_000;

describe("requests per second", () => {
  it("are dropped after a long sleep", async () => {
    const clock = new ManualClock();
    const rate = new RequestRate(clock);
    rate.count();
    await clock.advance(7 * 24 * HOUR);
    rate.count();
    await clock.advance(1_000);
    expect(rate.perSecond().reduce((a, b) => a + b)).toBe(1);
  });
});

describe("recent errors", () => {
  it("come newest first, and repeated errors have a count", async () => {
    const clock = new ManualClock();
    const errors = new RecentErrors(clock);
    const first = clock.now();
    errors.record({ where: "/ohlcv", code: "http_503", message: "503\n  Service   Unavailable" });
    await clock.advance(1_000);
    errors.record({ where: "market_caps", code: "forbidden", message: "no scope" });
    errors.record({ where: "/ohlcv", code: "http_503", message: "503 Service Unavailable" });
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
});
