import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import {
  type HeadScheduleRules,
  nextHeadPoll,
  pollsPerSecond,
} from "../../../src/sync/live/head-schedule.ts";
import type { SeriesHead } from "../../../src/warehouse/coverage/series-queries.ts";

const SECOND = MICROS_PER_SECOND;
const HOUR = 3600 * SECOND;
const now = parseTimestamp("2026-03-01T12:34:56Z") ?? 0;
const rules: HeadScheduleRules = {
  cadence: 30 * SECOND,
  settleDelay: 60 * SECOND,
  confirmEvery: HOUR,
  tickSeriesCount: 1,
  liveSince: now - 5 * HOUR,
  seriesCount: 50,
  polledCount: 0,
  pollsPerSecond: pollsPerSecond(null),
};
const head = (more: Partial<SeriesHead> = {}): SeriesHead => ({
  key: { stream: "index_ticks", series: 1 },
  indexType: "GWA",
  indexId: "btc",
  name: "BTC",
  from: now - 60 * SECOND,
  isNew: false,
  isNotFound: false,
  ...more,
});

describe("a head", () => {
  it("that is covered live is due hourly, whenever it was polled before", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 4 * 3600 }), (indexId, ago) => {
        const polledAt = now - ago * SECOND;
        const first = nextHeadPoll(head({ indexId, from: polledAt - rules.settleDelay }), rules);
        expect(first - polledAt).toBeGreaterThanOrEqual(HOUR / 2 - 1);
        expect(first - polledAt).toBeLessThanOrEqual(1.5 * HOUR + 1);
        const second = nextHeadPoll(head({ indexId, from: first + 2 * SECOND - rules.settleDelay }), rules);
        expect(Math.abs(second - first - HOUR)).toBeLessThan(SECOND);
      }),
    );
  });

  it("that is covered live is confirmed as often as the settings say and the requests allow", () => {
    const often = { ...rules, confirmEvery: 600 * SECOND };
    const dueAfter = (more: Partial<HeadScheduleRules>) => nextHeadPoll(head(), { ...often, ...more }) - now;
    expect(dueAfter({ tickSeriesCount: 53 })).toBeLessThanOrEqual(900 * SECOND);
    // 6,000 series at five polls a second take 20 minutes; throttled to one request a second, three hours.
    expect(dueAfter({ tickSeriesCount: 6_000 })).toBeGreaterThanOrEqual(599 * SECOND);
    expect(dueAfter({ tickSeriesCount: 6_000 })).toBeLessThanOrEqual(1_800 * SECOND);
    const throttled = { tickSeriesCount: 6_000, pollsPerSecond: pollsPerSecond(1) };
    expect(dueAfter(throttled)).toBeGreaterThanOrEqual(6_000 * SECOND - SECOND);
    const dues = Array.from({ length: 1_000 }, (_, n) => nextHeadPoll(head({ indexId: `id-${n}` }), often));
    const perMinute = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
    for (const own of perMinute.values()) expect(own.length).toBeLessThan(150);
  });

  it("has its own minute: five thousand heads cause no burst", () => {
    const dues = Array.from({ length: 5_000 }, (_, n) =>
      nextHeadPoll(head({ indexId: `6f0a2ce9-f9a8-4029-a9f3-${String(n).padStart(12, "0")}` }), rules),
    );
    const minutes = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
    const busiest = Math.max(...[...minutes.values()].map((inMinute) => inMinute.length));
    // The average is 83.
    expect(busiest).toBeLessThan(130);
    expect(minutes.size).toBeGreaterThanOrEqual(60);
  });

  it("E16: with missed ticks is due at once, and again after the settle delay", () => {
    const liveSince = now - 10 * SECOND;
    expect(nextHeadPoll(head({ from: now - HOUR }), { ...rules, liveSince })).toBe(liveSince);
    const filled = nextHeadPoll(head({ from: now - 60 * SECOND }), { ...rules, liveSince });
    expect(filled).toBeGreaterThanOrEqual(liveSince + rules.settleDelay);
    expect(filled).toBeLessThanOrEqual(liveSince + rules.settleDelay + 10 * SECOND);
  });

  it("with a possibly skipped tick is due after the settle delay, five such series a second", () => {
    const recheckFrom = now - 10 * SECOND;
    const alone = nextHeadPoll(head(), { ...rules, recheckFrom, recheckCount: 1 });
    expect(alone).toBeGreaterThanOrEqual(recheckFrom + rules.settleDelay);
    expect(alone).toBeLessThanOrEqual(recheckFrom + rules.settleDelay + SECOND);
    const many = { ...rules, recheckFrom, recheckCount: 5_000 };
    const dues = Array.from({ length: 5_000 }, (_, n) => nextHeadPoll(head({ indexId: `index ${n}` }), many));
    const minutes = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
    expect(Math.max(...[...minutes.values()].map((inMinute) => inMinute.length))).toBeLessThan(400);
    // A series that was just polled waits for its turn, but not longer than until its hourly poll.
    expect(Math.min(...dues)).toBeGreaterThanOrEqual(now + 500 * SECOND);
    const hourly = nextHeadPoll(head(), rules);
    expect(nextHeadPoll(head(), { ...many, recheckCount: 100_000 })).toBe(hourly);
  });

  it("that is not covered live is due at cadence, or as often as five requests a second allow", () => {
    const notLive = { ...rules, liveSince: undefined };
    expect(nextHeadPoll(head(), { ...notLive, polledCount: 50 })).toBe(now + 30 * SECOND);
    expect(nextHeadPoll(head(), { ...notLive, polledCount: 5_000 })).toBe(now + 1_000 * SECOND);
    // Polls take half of a request limit.
    const limited = { ...notLive, polledCount: 50, pollsPerSecond: pollsPerSecond(1) };
    expect(nextHeadPoll(head(), limited)).toBe(now + 100 * SECOND);
    expect(pollsPerSecond(100)).toBe(5);
  });

  it("that REST has not published is polled at cadence, live or not, and not again at once", () => {
    const publication = {
      publishedTo: now - HOUR,
      askedAt: now,
      askedTo: now - rules.settleDelay,
      quietMargin: 0,
    };
    const lagging = head({ from: now - HOUR, publication });
    expect(nextHeadPoll(lagging, { ...rules, liveSince: undefined })).toBe(now + 30 * SECOND);
    expect(nextHeadPoll(lagging, { ...rules, liveSince: now - HOUR / 2 })).toBe(now + 30 * SECOND);
    // The span began before REST stopped: the live feed has everything since.
    expect(nextHeadPoll(lagging, { ...rules, liveSince: now - 2 * HOUR })).toBeGreaterThanOrEqual(
      now + HOUR / 2,
    );
  });

  it("of a quiet series is polled hourly under a live feed, although its last hour is not covered", () => {
    const asked = { askedAt: now, askedTo: now - rules.settleDelay };
    const publication = { publishedTo: now - 90 * MICROS_PER_DAY, ...asked, quietMargin: HOUR };
    const quiet = head({ from: now - HOUR, publication });
    const liveSince = now - HOUR / 2;
    expect(nextHeadPoll(quiet, { ...rules, liveSince })).toBeGreaterThanOrEqual(now + HOUR / 2 - SECOND);
  });

  it("of bars that the service publishes late is polled every ten minutes; of a quiet series after its margin", () => {
    const key = { stream: "ohlcv", series: 1 } as const;
    const yesterday = Math.floor(now / MICROS_PER_DAY - 1) * MICROS_PER_DAY;
    const publication = { publishedTo: yesterday, askedAt: now, askedTo: now, quietMargin: 0 };
    expect(nextHeadPoll(head({ key, from: yesterday, publication }), rules)).toBe(now + 600 * SECOND);
    const today = yesterday + MICROS_PER_DAY;
    const quiet = { publishedTo: 0, askedAt: now, askedTo: now, quietMargin: HOUR };
    const due = nextHeadPoll(head({ key, from: today, publication: quiet }), { ...rules, isHurried: true });
    expect(due).toBe(today + MICROS_PER_DAY + HOUR);
  });

  it("of an unknown index is due the next night, live or not", () => {
    const tomorrow = Math.ceil(now / MICROS_PER_DAY) * MICROS_PER_DAY;
    for (const liveSince of [undefined, now - HOUR]) {
      const due = nextHeadPoll(head({ isNotFound: true }), { ...rules, liveSince });
      expect(due).toBeGreaterThanOrEqual(tomorrow + rules.settleDelay);
      expect(due).toBeLessThan(tomorrow + 2 * HOUR);
    }
  });

  it("of daily bars is due in the hour after its day has closed", () => {
    const today = Math.floor(now / MICROS_PER_DAY) * MICROS_PER_DAY;
    const bars = (from: number) => nextHeadPoll(head({ key: { stream: "ohlcv", series: 1 }, from }), rules);
    expect(bars(today)).toBeGreaterThanOrEqual(today + MICROS_PER_DAY + rules.settleDelay);
    expect(bars(today)).toBeLessThan(today + MICROS_PER_DAY + 2 * HOUR);
    expect(bars(today - 3 * MICROS_PER_DAY)).toBeLessThan(now);
    const key = { stream: "ohlcv", series: 1 } as const;
    const hurried = nextHeadPoll(head({ key, from: today }), { ...rules, isHurried: true });
    expect(hurried).toBe(today + MICROS_PER_DAY + rules.settleDelay);
  });
});
