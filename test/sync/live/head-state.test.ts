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
/** The last tick came three periods ago; REST was polled before. */
const silent = listen(live({ from: later(-600) }), now - 3 * PERIOD, now);
/** The tick of `now - PERIOD` did not arrive. */
const skipped = skip(live({ from: later(-600) }), now - 2 * PERIOD, now);
const hasNone = () => false;
const hasSome = () => true;

interface Row {
  readonly fault: string;
  readonly head: HeadState;
  readonly timing?: Partial<HeadTiming>;
  /** Seconds after `now`. */
  readonly dueFrom: number;
  readonly dueTo?: number;
}

const rows: readonly Row[] = [
  { fault: "no live feed: at cadence", head: offline(), dueFrom: 30 },
  {
    fault: "no live feed, many series: as often as five requests a second allow",
    head: offline(),
    timing: { polledCount: 5_000 },
    dueFrom: 1_000,
  },
  {
    fault: "no live feed, and a limit of one request a second: half of it",
    head: offline(),
    timing: { polledCount: 50, pollsPerSecond: pollsPerSecond(1) },
    dueFrom: 100,
  },
  {
    fault: "H1: REST lags, no live feed: at cadence, not again at once",
    head: offline({ from: now - HOUR, ...asked(now - HOUR) }),
    dueFrom: 30,
  },
  {
    fault: "H1: REST lags, and the feed began since: at cadence",
    head: live({ from: now - HOUR, ...asked(now - HOUR) }, now - HOUR / 2),
    dueFrom: 30,
  },
  {
    fault: "H1: REST lags, but the feed has everything since: as usual",
    head: live({ from: now - HOUR, ...asked(now - HOUR) }),
    dueFrom: 1_800,
    dueTo: 5_400,
  },
  {
    fault: "H1: a quiet series: as usual, although its last hour is not covered",
    head: live({ from: now - HOUR, ...asked(now - 90 * MICROS_PER_DAY, HOUR) }, now - HOUR / 2),
    dueFrom: 1_799,
    dueTo: 5_401,
  },
  {
    fault: "E16: the feed began after the last poll: at once",
    head: live({ from: now - HOUR }, later(-10)),
    dueFrom: -10,
  },
  {
    fault: "E16: polled since the feed began: again after the settle delay",
    head: live({}, later(-10)),
    dueFrom: 50,
    dueTo: 60,
  },
  { fault: "E13, H6: silent for three periods: now", head: silent, dueFrom: -15, dueTo: 0 },
  {
    fault: "E13, H6: silent from the start of the span: 2.5 periods later",
    head: listen(live({}, later(-70)), 0, now),
    timing: { settleDelay: 0 },
    dueFrom: 5,
    dueTo: 6,
  },
  {
    fault: "H6: silent, and REST has no newer tick: when twice that silence has passed",
    head: resolve(silent, current(now), now, timing, hasNone),
    dueFrom: 60,
    dueTo: 61,
  },
  {
    fault: "H6: silent, and REST has newer ticks: at cadence until ticks arrive",
    head: resolve(silent, current(now), now, timing, hasSome),
    dueFrom: 30,
  },
  {
    fault: "H6: still silent after that: at cadence",
    head: listen(resolve(silent, current(now), now, timing, hasSome), now - 4 * PERIOD, later(40)),
    dueFrom: 30,
  },
  {
    fault: "H6: ticks arrive again: at once, since some are missing before",
    head: listen(resolve(silent, current(now), now, timing, hasSome), undefined, later(40)),
    dueFrom: 40,
  },
  {
    fault: "H6: the feed begins anew after a silence: at once",
    head: follow(resolve(silent, current(now), now, timing, hasSome), later(20)),
    dueFrom: 20,
  },
  {
    fault: "H6: the silence ends before REST was asked: as usual, the step to the next tick shows the rest",
    head: listen(silent, undefined, now),
    dueFrom: 1_199,
    dueTo: 4_801,
  },
  { fault: "a tick was skipped: after the settle delay", head: skipped, dueFrom: 60, dueTo: 61 },
  {
    fault: "a skip that REST has shown already: as usual",
    head: skip(live(), later(-200), later(-90)),
    dueFrom: 1_799,
    dueTo: 5_401,
  },
  {
    fault: "a skip before the span, which the first poll fetches",
    head: skip(live({}, later(-70)), later(-80), later(0)),
    timing: { settleDelay: 0 },
    dueFrom: 1_739,
    dueTo: 5_401,
  },
  {
    fault: "the tick between was only late in REST too: the next such step is usual",
    head: skip(resolve(skipped, current(later(60)), later(60), timing, hasNone), later(70), later(70 + 90)),
    dueFrom: 1_799,
    dueTo: 5_401,
  },
  {
    fault: "a 404: the next night",
    head: live({ isNotFound: true }),
    dueFrom: (today + MICROS_PER_DAY - now) / SECOND + 60,
    dueTo: (today + MICROS_PER_DAY - now) / SECOND + 3_660,
  },
  {
    fault: "a bar: in the hour after its day has closed",
    head: bars(today),
    dueFrom: (today + MICROS_PER_DAY - now) / SECOND + 60,
    dueTo: (today + MICROS_PER_DAY - now) / SECOND + 3_660,
  },
  {
    fault: "a bar that the nightly job needs: once its day has closed",
    head: bars(today),
    timing: { isHurried: true },
    dueFrom: (today + MICROS_PER_DAY - now) / SECOND + 60,
  },
  {
    fault: "a bar that the service publishes late: every ten minutes",
    head: bars(today - MICROS_PER_DAY, asked(today - MICROS_PER_DAY)),
    dueFrom: 600,
  },
  {
    fault: "a bar of a quiet series: after its margin",
    head: bars(today, asked(0, HOUR)),
    timing: { isHurried: true },
    dueFrom: (today + MICROS_PER_DAY - now) / SECOND + 3_600,
  },
];

describe("a head is due", () => {
  it.each(rows)("$fault", ({ head, timing: more, dueFrom, dueTo = dueFrom }) => {
    const due = (dueAt(head, { ...timing, ...more }) - now) / SECOND;
    expect(due).toBeGreaterThanOrEqual(dueFrom);
    expect(due).toBeLessThanOrEqual(dueTo);
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
    const quiet = { ...live(), period: 8 * PERIOD };
    const periodAfter = (at: number) => resolve(quiet, current(at), at, timing, hasNone).period / PERIOD;
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
