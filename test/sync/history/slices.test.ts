import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { normalise } from "../../../src/model/time-range.ts";
import { compareUrgency, cutIntoSlices, type Slice } from "../../../src/sync/history/walk-planner.ts";

const cadence = 30 * MICROS_PER_SECOND;
const day = MICROS_PER_DAY;
const ranges = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 250 * 24 }), fc.integer({ min: 1, max: 100 * 24 })), {
    maxLength: 6,
  })
  .map((pairs) =>
    normalise(pairs.map(([from, length]) => ({ from: (from * day) / 24, to: ((from + length) * day) / 24 }))),
  );

describe("slices of gaps", () => {
  it("cover any gaps completely and without overlap", () => {
    fc.assert(
      fc.property(ranges, fc.integer({ min: 0, max: 200 }), (open, windowStartDay) => {
        const timing = { stream: "index_ticks", targetEnd: 300 * day, cadence } as const;
        const slices = cutIntoSlices(timing, open, windowStartDay * day);
        expect(normalise(slices.map(({ range }) => range))).toEqual(open);
        const sum = slices.reduce((total, { range }) => total + range.to - range.from, 0);
        expect(sum).toBe(open.reduce((total, { from, to }) => total + to - from, 0));
      }),
    );
  });

  it("C18: are sorted: head, soonest to expire, bars, newest history", () => {
    const targetEnd = 200 * day;
    const cut = (stream: "index_ticks" | "ohlcv", from: number, to: number) =>
      cutIntoSlices({ stream, targetEnd, cadence }, [{ from: from * day, to: to * day }], 0);
    const order = [...cut("index_ticks", 0, 200), ...cut("ohlcv", 0, 200)].sort(compareUrgency);
    const kinds = order.map(({ urgency }) => urgency);
    expect([...new Set(kinds)]).toEqual(["head", "expiring", "bars", "history"]);
    const of = (urgency: Slice["urgency"]) =>
      order.filter((slice) => slice.urgency === urgency).map(({ range }) => range.from / day);
    expect(of("head")).toHaveLength(1);
    expect(of("expiring")).toEqual(of("expiring").toSorted((a, b) => a - b));
    expect(Math.max(...of("expiring"))).toBeLessThan(2);
    expect(of("history")).toEqual(of("history").toSorted((a, b) => b - a));
  });
});
