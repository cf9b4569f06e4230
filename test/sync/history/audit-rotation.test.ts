import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { subtract, type TimeRanges, union } from "../../../src/model/time-range.ts";
import { cutOnGrid } from "../../../src/sync/history/slices.ts";
import { dueTonight, nightsOfTurn } from "../../../src/sync/history/verify.ts";
import type { SliceWalk } from "../../../src/sync/history/walk-slice.ts";

const cadence = 30 * MICROS_PER_SECOND;
const WINDOW = 200 * MICROS_PER_DAY;
const FIRST_NIGHT = 20_500;
const LINES = 12;

/** The window of each line on a night, as an audit cuts it: it moves on from night to night. */
function stretchesOn(now: Micros): SliceWalk[] {
  return Array.from({ length: LINES }, (_, series) => {
    const line = { stream: "index_ticks", series } as const;
    const named = {
      line,
      indexType: "GWA",
      indexId: `${series}`,
      name: `${series}`,
      urgency: "history",
    } as const;
    const rules = { keptFor: WINDOW, isHead: false, cadence, settleDelay: 2 * cadence, hindrance: null };
    const pieces = cutOnGrid([{ from: now - WINDOW, to: now }], cadence);
    return pieces.map((range): SliceWalk => ({ ...named, ...rules, range }));
  }).flat();
}

describe("the nightly comparison", () => {
  it("goes round: whatever was settled at the beginning of a turn, and is still served, is compared within it", () => {
    const nights = nightsOfTurn(stretchesOn(FIRST_NIGHT * MICROS_PER_DAY).length);
    expect(nights).toBe(30);
    for (const first of [FIRST_NIGHT, FIRST_NIGHT + 7]) {
      const compared = new Map<number, TimeRanges>();
      for (let night = first; night < first + nights; night++) {
        const due = dueTonight(stretchesOn(night * MICROS_PER_DAY), night * MICROS_PER_DAY);
        expect(due.length).toBeGreaterThan(15);
        expect(due.length).toBeLessThan(60);
        for (const { line, range } of due)
          compared.set(line.series, union(compared.get(line.series) ?? [], [range]));
      }
      const served = { from: (first + nights) * MICROS_PER_DAY - WINDOW, to: first * MICROS_PER_DAY };
      for (let series = 0; series < LINES; series++)
        expect({ series, left: subtract([served], compared.get(series) ?? []) }).toEqual({
          series,
          left: [],
        });
    }
  });

  it("is whole each night where there is little, and five hundred stretches at most where there is much", () => {
    expect([0, 1, 59, 60, 599, 15_000, 15_001, 100_000].map(nightsOfTurn)).toEqual([
      1, 1, 1, 3, 15, 30, 60, 240,
    ]);
    for (let stretches = 60; stretches < 200_000; stretches = Math.ceil(stretches * 1.1)) {
      expect(stretches / nightsOfTurn(stretches)).toBeGreaterThanOrEqual(20);
      expect(stretches / nightsOfTurn(stretches)).toBeLessThanOrEqual(500);
    }
  });
});
