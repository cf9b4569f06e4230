import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { subtract, type TimeRanges, union } from "../../../src/model/time-range.ts";
import { cutOnGrid } from "../../../src/sync/history/slices.ts";
import { rotationLength, selectDueTonight } from "../../../src/sync/history/verify.ts";
import type { SliceWalk } from "../../../src/sync/history/walk-slice.ts";

const cadence = 30 * MICROS_PER_SECOND;
const WINDOW = 200 * MICROS_PER_DAY;
const FIRST_NIGHT = 20_500;
const SERIES_COUNT = 12;

/** The window of each series in one night, cut as the audit cuts it. It moves from night to night. */
function slicesOn(now: Micros): SliceWalk[] {
  return Array.from({ length: SERIES_COUNT }, (_, series) => {
    const key = { stream: "index_ticks", series } as const;
    const named = {
      key,
      indexType: "GWA",
      indexId: `${series}`,
      name: `${series}`,
      urgency: "history",
    } as const;
    const rules = {
      serviceWindow: WINDOW,
      isHead: false,
      cadence,
      settleDelay: 2 * cadence,
      quietMargin: 0,
      blockedReason: null,
    };
    const pieces = cutOnGrid([{ from: now - WINDOW, to: now }], cadence);
    return pieces.map((range): SliceWalk => ({ ...named, ...rules, range }));
  }).flat();
}

describe("the nightly audit", () => {
  it("compares everything that is covered at the start of a rotation and still served at its end", () => {
    const nights = rotationLength(slicesOn(FIRST_NIGHT * MICROS_PER_DAY).length);
    expect(nights).toBe(30);
    for (const first of [FIRST_NIGHT, FIRST_NIGHT + 7]) {
      const compared = new Map<number, TimeRanges>();
      for (let night = first; night < first + nights; night++) {
        const due = selectDueTonight(slicesOn(night * MICROS_PER_DAY), night * MICROS_PER_DAY);
        expect(due.length).toBeGreaterThan(15);
        expect(due.length).toBeLessThan(60);
        for (const { key, range } of due)
          compared.set(key.series, union(compared.get(key.series) ?? [], [range]));
      }
      const served = { from: (first + nights) * MICROS_PER_DAY - WINDOW, to: first * MICROS_PER_DAY };
      for (let series = 0; series < SERIES_COUNT; series++)
        expect({ series, left: subtract([served], compared.get(series) ?? []) }).toEqual({
          series,
          left: [],
        });
    }
  });

  it("compares everything each night if there is little, and at most 500 slices if there is much", () => {
    expect([0, 1, 59, 60, 599, 15_000, 15_001, 100_000].map(rotationLength)).toEqual([
      1, 1, 1, 3, 15, 30, 60, 240,
    ]);
    for (let slices = 60; slices < 200_000; slices = Math.ceil(slices * 1.1)) {
      expect(slices / rotationLength(slices)).toBeGreaterThanOrEqual(20);
      expect(slices / rotationLength(slices)).toBeLessThanOrEqual(500);
    }
  });
});
