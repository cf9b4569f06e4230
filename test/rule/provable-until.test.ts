import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY as DAY, MICROS_PER_SECOND as SECOND } from "../../src/model/time.ts";
import type { PageAnswer, SeriesRules } from "../../src/rule/answer.ts";
import { provableUntil } from "../../src/rule/provable-until.ts";
import { page } from "../support/rule/pages.ts";
import { type StoredContent, storedSeries } from "../support/rule/stored-series.ts";

const HOUR = 3600 * SECOND;
const noon = Date.parse("2026-03-01T12:00:00Z") * 1000;
const midnight = Date.parse("2026-03-01T00:00:00Z") * 1000;

const tickRules: SeriesRules = {
  period: 30 * SECOND,
  settleDelay: 60 * SECOND,
  lateness: 0,
  step: 1,
  isDaily: false,
  quietMargin: HOUR,
  windowStart: Number.MIN_SAFE_INTEGER,
  floor: Number.MIN_SAFE_INTEGER,
};
const barRules: SeriesRules = { ...tickRules, period: DAY, step: DAY, isDaily: true };

interface Case extends Partial<Omit<PageAnswer, "timestamps" | "asOf">> {
  /** By `zero`, as all times of a case. */
  readonly asOf?: number;
  readonly stored?: StoredContent;
  readonly rules?: Partial<SeriesRules>;
}

/** What the first page of a walk over four days up to `zero` shows, with records at these distances from it. */
function boundOf(
  ages: readonly number[],
  { asOf = 60 * SECOND, stored = {}, rules, ...more }: Case,
  zero = noon,
) {
  const { rows = [], previews = [], ledger = [], publication, othersTo } = stored;
  const move = (ts: number) => zero + ts;
  const moved = {
    ...stored,
    rows: rows.map(move),
    previews: previews.map(move),
    ledger: ledger.map((range) => ({ ...range, from: move(range.from), to: move(range.to) })),
    ...(publication?.publishedTo === undefined
      ? {}
      : { publication: { publishedTo: move(publication.publishedTo) } }),
    ...(othersTo === undefined ? {} : { othersTo: move(othersTo) }),
  };
  const gap = { from: zero - 4 * DAY, to: zero };
  const answer = page(ages.map(move), { gap, provenFrom: gap.to, isHead: true, ...more, asOf: move(asOf) });
  const basic = zero === midnight ? barRules : tickRules;
  const bound = provableUntil(answer, gap.from, storedSeries(moved), { ...basic, ...rules });
  const { publication: shown } = bound;
  return {
    ...bound,
    /** Undefined: the page proves nothing. */
    until: bound.until > gap.from ? bound.until - zero : undefined,
    /** Up to where REST has shown records, when it was asked, and how quiet it is. */
    shown: shown && [
      shown.publishedTo && shown.publishedTo - zero,
      shown.askedAt && shown.askedAt - zero,
      shown.quietMargin,
    ],
  };
}

const until = (...args: Parameters<typeof boundOf>) => boundOf(...args).until;

describe("what is final when a page is made", () => {
  const made = (at: number, more: Case = {}) => {
    const { until, isFinal } = boundOf([0], { madeAt: noon + at, ...more });
    return [until, isFinal];
  };

  it.each<[what: string, result: readonly unknown[], expected: readonly unknown[]]>([
    [
      "all that is older than the settle delay; a Date header has whole seconds",
      made(55 * SECOND),
      [0, true],
    ],
    ["nothing younger", made(54 * SECOND), [-SECOND, false]],
    ["by the page's own age, if it is from a cache", made(59 * SECOND, { isStale: true }), [-SECOND, false]],
    ["with no doubt, if the cache says since when", made(60 * SECOND, { isStale: true }), [0, true]],
    [
      "less, if records have appeared later than that",
      made(55 * SECOND, { rules: { lateness: 90 * SECOND } }),
      [-30 * SECOND, true],
    ],
    [
      "so below the head too: a server that lags may have made the page",
      made(55 * SECOND, { rules: { lateness: 90 * SECOND }, isHead: false }),
      [-30 * SECOND, true],
    ],
  ])("is %s", (_, result, expected) => {
    expect(result).toEqual(expected);
  });

  it("ends at a whole step", () => {
    const bars = (madeAt: number) => boundOf([0], { madeAt: midnight + madeAt }, midnight).until;
    expect([bars(55 * SECOND), bars(55 * SECOND - 1)]).toEqual([0, -DAY]);
  });
});

describe("a page of the head", () => {
  it.each<[distance: number, proven: number]>([
    [29.993 * SECOND, 29.993 * SECOND],
    [60 * SECOND, 30 * SECOND],
    // A record in between is no sign of the period.
    [2 * SECOND, 30 * SECOND],
    [15 * SECOND, 30 * SECOND],
    [15 * SECOND + 1, 15 * SECOND + 1],
  ])("with records %d apart proves %d after the newest", (distance, proven) => {
    const newest = -600 * SECOND;
    expect(until([newest, newest - distance, newest - distance - 30 * SECOND], {})).toBe(newest + proven);
  });

  it.each<[what: string, ages: readonly number[], proven: number | undefined, shown: number]>([
    ["its newest record and one period", [-600 * SECOND, -630 * SECOND], -570 * SECOND, -570 * SECOND],
    ["no more than the gap", [-30 * SECOND], 0, 0],
    ["nothing by a record from the future", [90 * SECOND + 1, -600 * SECOND], -570 * SECOND, -570 * SECOND],
    ["all by one that is a period ahead", [90 * SECOND, -600 * SECOND], 0, 120 * SECOND],
    ["nothing without records", [], undefined, 0],
    ["nothing by records below the gap", [-4 * DAY - 30 * SECOND], undefined, -4 * DAY],
  ])("proves %s", (_, ages, proven, publishedTo) => {
    const bound = boundOf(ages, {});
    expect([bound.until, bound.shown]).toEqual([proven, [publishedTo, 60 * SECOND, 0]]);
    expect(bound.isUnpublished).toBe(proven !== 0);
  });

  it("shows nothing of the head, if it is not the first of its walk", () => {
    const later = boundOf([-HOUR], { provenFrom: noon - 1 });
    expect([later.until, later.publication]).toEqual([-1, undefined]);
    const atEnd = boundOf([], { isContinued: true });
    expect([atEnd.until, atEnd.publication]).toEqual([0, undefined]);
  });
});

describe("silence above the newest record", () => {
  const quietTo = 65 * SECOND - HOUR;
  const spoken = -2 * HOUR + 30 * SECOND;
  const due = 30 * SECOND;
  const confirmed = { isSilenceConfirmed: true };
  const others = (othersTo: number) => ({ ...confirmed, stored: { othersTo } });

  it.each<[what: string, ages: readonly number[], more: Case, proven: number | undefined]>([
    ["counts, if another series is not silent", [-2 * HOUR], others(quietTo), quietTo],
    ["does not, if the other one lags too", [-2 * HOUR], others(quietTo - 1), spoken],
    ["does not without a second response", [-2 * HOUR], { stored: { othersTo: quietTo } }, spoken],
    ["counts of a series without records", [], others(quietTo), quietTo],
    ["counts once it is longer than the margin", [due - HOUR - 1], others(quietTo), quietTo],
    ["does not before", [due - HOUR], others(quietTo), 60 * SECOND - HOUR],
    ["counts after a day without another series", [due - DAY - 1], confirmed, quietTo],
    ["does not before that day has passed", [due - DAY], confirmed, 60 * SECOND - DAY],
    ["H1: of a series without records counts up to a day before", [], confirmed, 65 * SECOND - DAY],
    [
      "H1: or up to a longer margin",
      [],
      { ...confirmed, rules: { quietMargin: 30 * HOUR } },
      65 * SECOND - 30 * HOUR,
    ],
    [
      "does not, if a live tick shows that REST lags",
      [-2 * HOUR],
      { ...confirmed, stored: { othersTo: quietTo, previews: [-1] } },
      spoken,
    ],
    [
      "counts, if live ticks are older or beyond the gap",
      [-2 * HOUR],
      { ...confirmed, stored: { othersTo: quietTo, previews: [-3 * HOUR, 0] } },
      quietTo,
    ],
    [
      "counts below the head, where the walk confirms it",
      [-2 * HOUR],
      { isHead: false, stored: { othersTo: 0 } },
      quietTo,
    ],
  ])("%s", (_, ages, more, proven) => {
    expect(until(ages, more)).toBe(proven);
  });

  it("is told, and that it is over", () => {
    expect(boundOf([-2 * HOUR], others(quietTo)).shown).toEqual([spoken, 60 * SECOND, HOUR]);
    // A series that has shown as much as it was asked for is not quiet, however long ago that is.
    const late = { ...others(3 * HOUR), asOf: 3 * HOUR };
    expect(boundOf([-30 * SECOND], late).shown).toEqual([0, 3 * HOUR, 0]);
  });
});

describe("live ticks that a page lacks", () => {
  const newest = -600 * SECOND;
  const live = (age: number, more: Case = {}) =>
    until([newest, newest - 30 * SECOND], { ...more, stored: { previews: [newest + age] } });

  it.each<[what: string, result: number | undefined, expected: number | undefined]>([
    ["are its newest record, within half a period", live(15 * SECOND), newest + 30 * SECOND],
    ["limit it to that record from then on", live(15 * SECOND + 1), newest + 1],
    ["limit nothing above what it proves", live(30 * SECOND), newest + 30 * SECOND],
    ["count for an hour", live(20 * SECOND, { asOf: newest + 20 * SECOND + HOUR - 1 }), newest + 1],
    [
      "are withdrawn after that",
      live(20 * SECOND, { asOf: newest + 20 * SECOND + HOUR }),
      newest + 30 * SECOND,
    ],
    [
      "limit it beside a record from the future",
      until([90 * SECOND + 1, newest], { stored: { previews: [newest + 20 * SECOND] } }),
      newest + 1,
    ],
    [
      "limit a page without records from its first moment on",
      until([], {
        isHead: false,
        stored: { publication: { publishedTo: 0 }, previews: [-4 * DAY] },
        asOf: 60 * SECOND - 4 * DAY,
      }),
      undefined,
    ],
  ])("%s", (_, result, expected) => {
    expect(result).toBe(expected);
  });

  it("leave nothing proven of a page without records", () => {
    const stored = { publication: { publishedTo: 0 }, previews: [-600 * SECOND] };
    expect(until([], { isHead: false, stored })).toBeUndefined();
    expect(until([], { isHead: false, stored, asOf: HOUR - 600 * SECOND })).toBe(0);
  });
});

describe("a page of bars", () => {
  const bars = (ages: readonly number[], more: Case = {}) => boundOf(ages, more, midnight);

  it("does not prove the newest bar, if the service serves the bar of a running day", () => {
    expect(bars([-DAY])).toMatchObject({ until: 0, showsRunningDay: false });
    // An hour before the end of its day, clocks may differ; earlier, the day is running.
    expect(bars([-DAY], { asOf: -HOUR })).toMatchObject({ until: 0, showsRunningDay: false });
    expect(bars([-DAY], { asOf: -HOUR - 1 })).toMatchObject({ until: -DAY, showsRunningDay: true });
    // From then on, a bar is final once a newer one is shown.
    const stored = { servesRunningDay: true };
    expect(bars([-DAY], { stored }).until).toBe(-DAY);
    expect(bars([0, -DAY], { stored }).until).toBe(0);
    // Below the head, none of them is proven by what is stored.
    expect(bars([-DAY], { isHead: false, stored: { ...stored, rows: [-DAY] } }).until).toBe(-DAY);
  });

  it("does not take ticks for bars, however long their period is", () => {
    expect(until([-HOUR / 2], { rules: { period: 2 * HOUR } })).toBe(0);
  });

  it("proves silence from the end of the day on that has no bar", () => {
    const stored = { othersTo: DAY };
    const provenAt = (asOf: number) => bars([-3 * DAY], { isSilenceConfirmed: true, stored, asOf }).until;
    expect([provenAt(HOUR - DAY), provenAt(HOUR - DAY + 1), provenAt(DAY / 2)]).toEqual([-2 * DAY, -DAY, 0]);
  });
});

describe("a page below the head", () => {
  const lower = (stored: StoredContent, ages: readonly number[] = [-HOUR / 2]) =>
    until(ages, { isHead: false, stored });
  const shown = 30 * SECOND - HOUR / 2;
  const settled = (from: number, to: number, proof: "rows" | "empty") => ({
    ledger: [{ from, to, proof, reason: null }],
  });

  it.each<[what: string, stored: StoredContent, proven: number]>([
    ["proves as much as it shows", {}, shown],
    ["proves all, if REST has shown that much before", { publication: { publishedTo: 0 } }, 0],
    ["proves what REST has shown before", { publication: { publishedTo: -1 } }, -1],
    ["proves up to the newest row and one period", { rows: [-40 * SECOND] }, -10 * SECOND],
    ["proves all, if a row is newer", { rows: [HOUR] }, 0],
    ["does not count live ticks", { previews: [HOUR] }, shown],
    ["proves all, if what is above has rows", settled(0, HOUR, "rows"), 0],
    ["does not, if what is above is empty", settled(0, HOUR, "empty"), shown],
    ["does not, if it only touches the gap from below", settled(-SECOND, 0, "rows"), shown],
  ])("%s", (_, stored, proven) => {
    expect(lower(stored)).toBe(proven);
  });

  it("tells what it shows only if that is not all", () => {
    const below = { isHead: false };
    expect(boundOf([-30 * SECOND], below)).toMatchObject({ until: 0, publication: undefined });
    expect(boundOf([-31 * SECOND], below)).toMatchObject({ until: -SECOND, shown: [-SECOND, 0, 0] });
    const stale = { isStale: true };
    expect(boundOf([-31 * SECOND], stale)).toMatchObject({ until: -SECOND, shown: [-SECOND, 0, 0] });
  });

  it("without records proves up to a day before", () => {
    expect(lower({}, [])).toBe(65 * SECOND - DAY);
  });
});
