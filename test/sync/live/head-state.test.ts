import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  dueAt,
  follow,
  type HeadState,
  type HeadTiming,
  listen,
  liveSince,
  pollsPerSecond,
  readHead,
  resolve,
  skip,
} from "../../../src/sync/live/head-state.ts";
import type { SeriesHead } from "../../../src/warehouse/coverage/series-queries.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const SECOND = MICROS_PER_SECOND;
const HOUR = 3600 * SECOND;
const PERIOD = 30 * SECOND;
const now = parseTs("2026-03-01T12:34:56Z");
const later = (seconds: number) => now + seconds * SECOND;
const timing: HeadTiming = {
  cadence: PERIOD,
  settleDelay: 60 * SECOND,
  confirmEvery: HOUR,
  pollsPerSecond: pollsPerSecond(null),
  seriesCount: 50,
  tickSeriesCount: 1,
  polledCount: 0,
  doubtCount: 1,
};
const series = (more: Partial<SeriesHead> = {}): SeriesHead => ({
  key: { stream: "index_ticks", series: 1 },
  indexType: "GWA",
  indexId: "btc",
  name: "BTC",
  from: now - 60 * SECOND,
  isNew: false,
  isNotFound: false,
  ...more,
});
/** REST was asked at `askedAt` and has shown everything up to `publishedTo`. */
const asked = (publishedTo: number, quietMargin = 0, askedAt = now) => ({
  publication: { publishedTo, askedAt, askedTo: askedAt - timing.settleDelay, quietMargin },
});
const current = (askedAt: number) => series(asked(askedAt, 0, askedAt));
/** Delivered live for five hours, polled just now. */
const live = (more: Partial<SeriesHead> = {}, span = now - 5 * HOUR): HeadState =>
  follow(readHead(series(more), timing), span);
const offline = (more: Partial<SeriesHead> = {}): HeadState => readHead(series(more), timing);
const bars = (from: number, more: Partial<SeriesHead> = {}) =>
  offline({ key: { stream: "ohlcv", series: 1 }, from, ...more });
const today = Math.floor(now / MICROS_PER_DAY) * MICROS_PER_DAY;
const untilMidnight = (today + MICROS_PER_DAY - now) / SECOND;
const lagging = { from: now - HOUR, ...asked(now - HOUR) };
/** The last tick came three periods ago; REST was polled before. */
const silent = listen(live({ from: later(-600) }), now - 3 * PERIOD, now);
/** The tick of `now - PERIOD` did not arrive. */
const skipped = skip(live({ from: later(-600) }), now - 2 * PERIOD, now);
const hasNone = () => false;
const hasSome = () => true;
/** REST has newer ticks, or none. */
const missed = resolve(silent, current(now), now, timing, hasSome);
const quiet = resolve(silent, current(now), now, timing, hasNone);

/** `due`: in seconds after `now`; two numbers: at some time between them. */
type Row = [
  fault: string,
  head: HeadState,
  due: number | [from: number, to: number],
  timing?: Partial<HeadTiming>,
];

const rows: readonly Row[] = [
  ["no live feed: at cadence", offline(), 30],
  [
    "no live feed, many series: as often as five requests a second allow",
    offline(),
    1_000,
    { polledCount: 5_000 },
  ],
  [
    "no live feed, and a limit of one request a second: half of it",
    offline(),
    100,
    { polledCount: 50, pollsPerSecond: pollsPerSecond(1) },
  ],
  ["H1: REST lags, no live feed: at cadence, not again at once", offline(lagging), 30],
  ["H1: REST lags, and the feed began since: at cadence", live(lagging, now - HOUR / 2), 30],
  ["H1: REST lags, but the feed has everything since: as usual", live(lagging), [1_800, 5_400]],
  [
    "H1: a quiet series: as usual, although its last hour is not covered",
    live({ from: now - HOUR, ...asked(now - 90 * MICROS_PER_DAY, HOUR) }, now - HOUR / 2),
    [1_799, 5_401],
  ],
  ["E16: the feed began after the last poll: at once", live({ from: now - HOUR }, later(-10)), -10],
  ["E16: polled since the feed began: again after the settle delay", live({}, later(-10)), [50, 60]],
  ["E13, H6: silent for three periods: now", silent, [-15, 0]],
  [
    "E13, H6: silent from the start of the span: 2.5 periods later",
    listen(live({}, later(-70)), 0, now),
    [5, 6],
    { settleDelay: 0 },
  ],
  ["H6: silent, and REST has no newer tick: when twice that silence has passed", quiet, [60, 61]],
  ["H6: silent, and REST has newer ticks: at cadence until ticks arrive", missed, 30],
  ["H6: still silent after that: at cadence", listen(missed, now - 4 * PERIOD, later(40)), 30],
  [
    "H6: ticks arrive again: at once, since some are missing before",
    listen(missed, undefined, later(40)),
    40,
  ],
  ["H6: the feed begins anew after a silence: at once", follow(missed, later(20)), 20],
  [
    "H6: the silence ends before REST was asked: as usual, the step to the next tick shows the rest",
    listen(silent, undefined, now),
    [1_199, 4_801],
  ],
  ["a tick was skipped: after the settle delay", skipped, [60, 61]],
  ["a skip that REST has shown already: as usual", skip(live(), later(-200), later(-90)), [1_799, 5_401]],
  [
    "a skip before the span, which the first poll fetches",
    skip(live({}, later(-70)), later(-80), later(0)),
    [1_739, 5_401],
    { settleDelay: 0 },
  ],
  [
    "the tick between was only late in REST too: the next such step is usual",
    skip(resolve(skipped, current(later(60)), later(60), timing, hasNone), later(70), later(70 + 90)),
    [1_799, 5_401],
  ],
  ["a 404: the next night", live({ isNotFound: true }), [untilMidnight + 60, untilMidnight + 3_660]],
  ["a bar: in the hour after its day has closed", bars(today), [untilMidnight + 60, untilMidnight + 3_660]],
  [
    "a bar that the nightly job needs: once its day has closed",
    bars(today),
    untilMidnight + 60,
    { isHurried: true },
  ],
  [
    "a bar that the service publishes late: every ten minutes",
    bars(today - MICROS_PER_DAY, asked(today - MICROS_PER_DAY)),
    600,
  ],
  [
    "a bar of a quiet series: after its margin",
    bars(today, asked(0, HOUR)),
    untilMidnight + 3_600,
    { isHurried: true },
  ],
];

describe("a head is due", () => {
  it.each(rows)("%s", (_, head, expected, more = {}) => {
    const due = (dueAt(head, { ...timing, ...more }) - now) / SECOND;
    const [from, to] = typeof expected === "number" ? [expected, expected] : expected;
    expect(due).toBeGreaterThanOrEqual(from);
    expect(due).toBeLessThanOrEqual(to);
  });

  it("hourly while the feed delivers it, whenever it was polled before", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 4 * 3600 }), (indexId, ago) => {
        const polledAt = now - ago * SECOND;
        const dueAfter = (at: number) => dueAt(live({ indexId, from: at - timing.settleDelay }), timing);
        const first = dueAfter(polledAt);
        expect(first - polledAt).toBeGreaterThanOrEqual(HOUR / 2 - 1);
        expect(first - polledAt).toBeLessThanOrEqual(1.5 * HOUR + 1);
        expect(Math.abs(dueAfter(first + 2 * SECOND) - first - HOUR)).toBeLessThan(SECOND);
      }),
    );
  });

  it("as often as the settings say and the requests allow", () => {
    const dueAfter = (more: Partial<HeadTiming>) =>
      dueAt(live(), { ...timing, confirmEvery: 600 * SECOND, ...more }) - now;
    expect(dueAfter({ tickSeriesCount: 53 })).toBeLessThanOrEqual(900 * SECOND);
    // 6,000 series at five polls a second take 20 minutes; throttled to one request a second, three hours.
    expect(dueAfter({ tickSeriesCount: 6_000 })).toBeGreaterThanOrEqual(599 * SECOND);
    expect(dueAfter({ tickSeriesCount: 6_000 })).toBeLessThanOrEqual(1_800 * SECOND);
    const throttled = { tickSeriesCount: 6_000, pollsPerSecond: pollsPerSecond(1) };
    expect(dueAfter(throttled)).toBeGreaterThanOrEqual(6_000 * SECOND - SECOND);
    expect(pollsPerSecond(100)).toBe(5);
  });

  it.each([
    ["that are confirmed", (head: HeadState) => head, 130, 60],
    ["that fall silent at once", (head: HeadState) => listen(head, now - 3 * PERIOD, now), 400, 16],
    [
      "of which the feed skipped one tick each",
      (head: HeadState) => skip(head, now - 2 * PERIOD, now),
      400,
      16,
    ],
  ] as const)(
    "at its own time: five thousand heads %s cause no burst",
    (_, change, maxPerMinute, minutes) => {
      const many = { ...timing, doubtCount: 5_000 };
      const dues = Array.from({ length: 5_000 }, (_, n) => {
        const indexId = `6f0a2ce9-f9a8-4029-a9f3-${String(n).padStart(12, "0")}`;
        return dueAt(change(live({ indexId, from: now - HOUR / 4 })), many);
      });
      const byMinute = Map.groupBy(dues, (due) => Math.floor(due / (60 * SECOND)));
      expect(Math.max(...[...byMinute.values()].map(({ length }) => length))).toBeLessThan(maxPerMinute);
      expect(byMinute.size).toBeGreaterThanOrEqual(minutes);
    },
  );
});

/** Runs a day of checks; returns how often a silence made REST be asked. `lastTick`: the newest live tick at a time. */
function countAsks(lastTick: (at: number) => number, hasTicks: (range: TimeRange) => boolean): number {
  let head = follow(readHead(series({ from: 0 }), timing), 0);
  let asks = 0;
  for (let at = HOUR; at < MICROS_PER_DAY; at += PERIOD / 2) {
    const last = lastTick(at);
    head = listen(head, at - last > 2.5 * PERIOD ? last : undefined, at);
    const publication = { publishedTo: at, askedAt: at, askedTo: at, quietMargin: 0 };
    if (dueAt({ ...head, askedAt: at }, timing) > at + SECOND) continue;
    asks++;
    head = resolve(head, series({ from: 0, publication }), at, timing, hasTicks);
  }
  return asks;
}

describe("the period of a series", () => {
  it("H6: grows to ten minutes if it ticks so rarely: REST is asked a few times a day", () => {
    const asks = countAsks((at) => Math.floor(at / (20 * PERIOD)) * 20 * PERIOD, hasNone);
    expect(asks).toBeGreaterThan(0);
    expect(asks).toBeLessThan(10);
  });

  it("H6: doubles while a series has ended: REST is asked a dozen times at most", () => {
    expect(countAsks(() => HOUR, hasNone)).toBeLessThanOrEqual(12);
  });

  it("H6: does not grow by ticks that were lost: the next loss is noticed as soon", () => {
    let head = live();
    for (let round = 0; round < 5; round++) {
      const lost = now + round * HOUR;
      head = listen(head, lost, lost + 2.6 * PERIOD);
      expect(dueAt({ ...head, publishedTo: lost }, timing)).toBeLessThan(lost + 2.6 * PERIOD);
      head = resolve(head, current(lost + 2.6 * PERIOD), lost + 2.6 * PERIOD, timing, hasSome);
      expect(liveSince(head)).toBeUndefined();
      head = listen(head, undefined, lost + 10 * PERIOD);
      expect(liveSince(head)).toBe(lost + 10 * PERIOD);
      head = { ...head, askedAt: lost + 12 * PERIOD };
    }
  });

  it("is forgotten the next day", () => {
    const known = { ...live(), period: 8 * PERIOD };
    const periodAfter = (at: number) => resolve(known, current(at), at, timing, hasNone).period / PERIOD;
    expect([periodAfter(later(3_600)), periodAfter(now + MICROS_PER_DAY)]).toEqual([8, 1]);
  });

  it("H4: does not depend on milliseconds between the stamps of REST and the websocket, or a tick on its way", () => {
    const ranges: TimeRange[] = [];
    const record = (range: TimeRange) => ranges.push(range) < 0;
    resolve(silent, current(now), now, timing, record);
    resolve(skipped, current(later(60)), now, timing, record);
    expect(ranges).toEqual([
      { from: now - 2.5 * PERIOD, to: now - PERIOD },
      { from: now - 1.5 * PERIOD, to: now - 0.5 * PERIOD },
    ]);
  });

  it("is not learned from a poll that has not reached the tick after a skip", () => {
    const early = resolve(skipped, current(now), now, timing, hasNone);
    expect(early).toMatchObject({ lastLive: now - 2 * PERIOD, resumedAt: now, period: PERIOD });
    const decided = resolve(early, current(later(90)), later(90), timing, hasNone);
    expect(decided).toMatchObject({ lastLive: undefined, resumedAt: undefined, period: 2 * PERIOD });
  });
});
