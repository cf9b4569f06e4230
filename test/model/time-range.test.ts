import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  assertNormalised,
  formatRange,
  intersect,
  normalise,
  subtract,
  type TimeRange,
  totalDuration,
  union,
} from "../../src/model/time-range.ts";

const range = fc
  .tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 }))
  .map(([from, to]): TimeRange => ({ from, to }));
const ranges = fc.array(range, { maxLength: 12 }).map(normalise);
const timestamps = Array.from({ length: 41 }, (_, i) => i);

/** A reference implementation: the ranges as a plain set of timestamps. */
const asSet = (list: Iterable<TimeRange>) =>
  timestamps.filter((ts) => [...list].some(({ from, to }) => from <= ts && ts < to));

describe("time ranges", () => {
  it("normalise preserves the timestamps and returns a disjoint, merged, ascending list", () => {
    fc.assert(
      fc.property(fc.array(range), (list) => {
        const normal = normalise(list);
        assertNormalised(normal);
        expect(asSet(normal)).toEqual(asSet(list));
      }),
      { numRuns: 1000 },
    );
  });

  it("union, subtract and intersect agree with sets of timestamps", () => {
    fc.assert(
      fc.property(ranges, ranges, (a, b) => {
        const [inA, inB] = [new Set(asSet(a)), new Set(asSet(b))];
        expect(asSet(union(a, b))).toEqual(timestamps.filter((ts) => inA.has(ts) || inB.has(ts)));
        expect(asSet(subtract(a, b))).toEqual(timestamps.filter((ts) => inA.has(ts) && !inB.has(ts)));
        expect(asSet(intersect(a, b))).toEqual(timestamps.filter((ts) => inA.has(ts) && inB.has(ts)));
        for (const result of [union(a, b), subtract(a, b), intersect(a, b)]) assertNormalised(result);
        expect(totalDuration(subtract(a, b)) + totalDuration(intersect(a, b))).toBe(totalDuration(a));
      }),
      { numRuns: 1000 },
    );
  });

  it("assertNormalised throws for ranges that touch, overlap, are empty or descend", () => {
    for (const list of [
      [{ from: 1, to: 1 }],
      [{ from: 2, to: 1 }],
      ...["13 24", "12 23", "56 12"].map((both) =>
        both.split(" ").map(([from, to]) => ({ from: Number(from), to: Number(to) })),
      ),
      [{ from: Number.NaN, to: 2 }],
    ])
      expect(() => assertNormalised(list)).toThrow("not ascending and disjoint");
  });

  it("formatRange shows timestamps, and what is none as a number", () => {
    expect(formatRange({ from: 0, to: 1_500_000 })).toBe(
      "[1970-01-01T00:00:00.000000Z, 1970-01-01T00:00:01.500000Z)",
    );
    expect(formatRange({ from: Number.NEGATIVE_INFINITY, to: 0.5 })).toBe("[-Infinity, 0.5)");
  });
});
