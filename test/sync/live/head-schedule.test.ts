import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, parseInstant } from "../../../src/model/time.ts";
import { type DueRules, headDue, pollsASecond } from "../../../src/sync/live/head-schedule.ts";
import type { FollowedHead } from "../../../src/warehouse/coverage/gaps.ts";

const SECOND = MICROS_PER_SECOND;
const HOUR = 3600 * SECOND;
const now = parseInstant("2026-03-01T12:34:56Z") ?? 0;
const rules: DueRules = {
  cadence: 30 * SECOND,
  settleDelay: 60 * SECOND,
  since: now - 5 * HOUR,
  lines: 50,
  polled: 0,
  pollsASecond: pollsASecond(0),
};
const head = (more: Partial<FollowedHead> = {}): FollowedHead => ({
  line: { stream: "index_ticks", series: 1 },
  indexType: "GWA",
  indexId: "btc",
  name: "BTC",
  from: now - 60 * SECOND,
  isNew: false,
  isUnserved: false,
  ...more,
});

describe("a head", () => {
  it("that is heard live is due once an hour, whenever it was asked for before", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 4 * 3600 }), (indexId, ago) => {
        const askedAt = now - ago * SECOND;
        const first = headDue(head({ indexId, from: askedAt - rules.settleDelay }), rules);
        expect(first - askedAt).toBeGreaterThanOrEqual(HOUR / 2 - 1);
        expect(first - askedAt).toBeLessThanOrEqual(1.5 * HOUR + 1);
        const second = headDue(head({ indexId, from: first + 2 * SECOND - rules.settleDelay }), rules);
        expect(Math.abs(second - first - HOUR)).toBeLessThan(SECOND);
      }),
    );
  });

  it("has a moment of its own: five thousand of them make no burst", () => {
    const dues = Array.from({ length: 5_000 }, (_, n) =>
      headDue(head({ indexId: `6f0a2ce9-f9a8-4029-a9f3-${String(n).padStart(12, "0")}` }), rules),
    );
    const minutes = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
    const busiest = Math.max(...[...minutes.values()].map((own) => own.length));
    // Eighty-three on average.
    expect(busiest).toBeLessThan(130);
    expect(minutes.size).toBeGreaterThanOrEqual(60);
  });

  it("of which something was missed is due at once, and once more when REST can add nothing to it", () => {
    const since = now - 10 * SECOND;
    expect(headDue(head({ from: now - HOUR }), { ...rules, since })).toBe(since);
    const filled = headDue(head({ from: now - 60 * SECOND }), { ...rules, since });
    expect(filled).toBeGreaterThanOrEqual(since + rules.settleDelay);
    expect(filled).toBeLessThanOrEqual(since + rules.settleDelay + 10 * SECOND);
  });

  it("of which a tick seems to be missing is due when the service can add nothing, five a second of all such lines", () => {
    const doubted = now - 10 * SECOND;
    const alone = headDue(head(), { ...rules, doubted, doubtedLines: 1 });
    expect(alone).toBeGreaterThanOrEqual(doubted + rules.settleDelay);
    expect(alone).toBeLessThanOrEqual(doubted + rules.settleDelay + SECOND);
    const many = { ...rules, doubted, doubtedLines: 5_000 };
    const dues = Array.from({ length: 5_000 }, (_, n) => headDue(head({ indexId: `index ${n}` }), many));
    const minutes = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
    expect(Math.max(...[...minutes.values()].map((own) => own.length))).toBeLessThan(400);
    // Asked for a moment ago, it waits until it is its turn again, but not longer than it would have anyway.
    expect(Math.min(...dues)).toBeGreaterThanOrEqual(now + 500 * SECOND);
    const hourly = headDue(head(), rules);
    expect(headDue(head(), { ...many, doubtedLines: 100_000 })).toBe(hourly);
  });

  it("that is not heard is due at cadence, or as often as five requests a second allow for all of them", () => {
    const deaf = { ...rules, since: undefined };
    expect(headDue(head(), { ...deaf, polled: 50 })).toBe(now + 30 * SECOND);
    expect(headDue(head(), { ...deaf, polled: 5_000 })).toBe(now + 1_000 * SECOND);
    // Under a ceiling, polls take half of it.
    const paced = { ...deaf, polled: 50, pollsASecond: pollsASecond(1) };
    expect(headDue(head(), paced)).toBe(now + 100 * SECOND);
    expect(pollsASecond(100)).toBe(5);
  });

  it("of an index that the service does not have is due the next night, live or not", () => {
    const tomorrow = Math.ceil(now / MICROS_PER_DAY) * MICROS_PER_DAY;
    for (const since of [undefined, now - HOUR]) {
      const due = headDue(head({ isUnserved: true }), { ...rules, since });
      expect(due).toBeGreaterThanOrEqual(tomorrow + rules.settleDelay);
      expect(due).toBeLessThan(tomorrow + 2 * HOUR);
    }
  });

  it("of daily bars is due in the hour after its day has closed, and overdue after that", () => {
    const today = Math.floor(now / MICROS_PER_DAY) * MICROS_PER_DAY;
    const bars = (from: number) => headDue(head({ line: { stream: "ohlcv", series: 1 }, from }), rules);
    expect(bars(today)).toBeGreaterThanOrEqual(today + MICROS_PER_DAY + rules.settleDelay);
    expect(bars(today)).toBeLessThan(today + MICROS_PER_DAY + 2 * HOUR);
    expect(bars(today - 3 * MICROS_PER_DAY)).toBeLessThan(now);
    const line = { stream: "ohlcv", series: 1 } as const;
    const hurried = headDue(head({ line, from: today }), { ...rules, isHurried: true });
    expect(hurried).toBe(today + MICROS_PER_DAY + rules.settleDelay);
  });
});
