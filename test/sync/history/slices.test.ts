import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { normalise } from "../../../src/model/time-range.ts";
import { byUrgency, pagesFor, type Slice, slicesOf } from "../../../src/sync/history/slices.ts";

const cadence = 30 * MICROS_PER_SECOND;
const day = MICROS_PER_DAY;
const ranges = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 250 * 24 }), fc.integer({ min: 1, max: 100 * 24 })), {
    maxLength: 6,
  })
  .map((pairs) =>
    normalise(pairs.map(([from, length]) => ({ from: (from * day) / 24, to: ((from + length) * day) / 24 }))),
  );

describe("slices of holes", () => {
  it("are the holes, whole and without overlap, whatever the holes are", () => {
    fc.assert(
      fc.property(ranges, fc.integer({ min: 0, max: 200 }), (open, edge) => {
        const slices = slicesOf({ stream: "index_ticks", open, claim: 300 * day, edge: edge * day, cadence });
        expect(normalise(slices.map(({ range }) => range))).toEqual(open);
        const sum = slices.reduce((total, { range }) => total + range.to - range.from, 0);
        expect(sum).toBe(open.reduce((total, { from, to }) => total + to - from, 0));
      }),
    );
  });

  it("let one long hole use all of the concurrency, in walks of a few whole pages", () => {
    const open = [{ from: 0, to: 200 * day }];
    const slices = slicesOf({ stream: "index_ticks", open, claim: 200 * day, edge: undefined, cadence });
    expect(slices.length).toBeGreaterThan(50);
    expect(new Set(slices.slice(0, -1).map(({ range }) => pagesFor(range, cadence)))).toEqual(new Set([4]));
  });

  it("are filled head first, then what expires soonest, then bars, then the newest history", () => {
    const claim = 200 * day;
    const cut = (stream: "index_ticks" | "ohlcv", from: number, to: number) =>
      slicesOf({ stream, open: [{ from: from * day, to: to * day }], claim, edge: 0, cadence });
    const order = [...cut("index_ticks", 0, 200), ...cut("ohlcv", 0, 200)].sort(byUrgency);
    const kinds = order.map(({ urgency }) => urgency);
    expect([...new Set(kinds)]).toEqual(["head", "expiring", "bars", "history"]);
    const of = (urgency: Slice["urgency"]) =>
      order.filter((slice) => slice.urgency === urgency).map(({ range }) => range.from / day);
    expect(of("head")).toHaveLength(1);
    expect(of("expiring")).toEqual(of("expiring").toSorted((a, b) => a - b));
    expect(Math.max(...of("expiring"))).toBeLessThan(2);
    expect(of("history")).toEqual(of("history").toSorted((a, b) => b - a));
  });

  it("do not cut the few pages of daily bars", () => {
    const open = [{ from: 0, to: 4_000 * day }];
    expect(slicesOf({ stream: "ohlcv", open, claim: 4_000 * day, edge: undefined, cadence: day })).toEqual([
      { range: open[0], urgency: "bars" },
    ]);
  });
});
