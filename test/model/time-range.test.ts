import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  assertNormal,
  extent,
  includes,
  intersect,
  normalise,
  subtract,
  type TimeRange,
  union,
} from "../../src/model/time-range.ts";

const range = fc
  .tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 }))
  .map(([from, to]): TimeRange => ({ from, to }));
const ranges = fc.array(range, { maxLength: 12 }).map(normalise);
const moments = Array.from({ length: 41 }, (_, i) => i);

/** The same thing said as a plain set of moments: slow, and beyond doubt. */
const asSet = (list: Iterable<TimeRange>) =>
  moments.filter((moment) => [...list].some(({ from, to }) => from <= moment && moment < to));

describe("time ranges", () => {
  it("normalise keeps the moments and yields a disjoint, merged, ascending list", () => {
    fc.assert(
      fc.property(fc.array(range), (list) => {
        const normal = normalise(list);
        assertNormal(normal);
        expect(asSet(normal)).toEqual(asSet(list));
      }),
      { numRuns: 2000 },
    );
  });

  it("union, subtract and intersect agree with sets of moments", () => {
    fc.assert(
      fc.property(ranges, ranges, (a, b) => {
        const [inA, inB] = [new Set(asSet(a)), new Set(asSet(b))];
        expect(asSet(union(a, b))).toEqual(moments.filter((m) => inA.has(m) || inB.has(m)));
        expect(asSet(subtract(a, b))).toEqual(moments.filter((m) => inA.has(m) && !inB.has(m)));
        expect(asSet(intersect(a, b))).toEqual(moments.filter((m) => inA.has(m) && inB.has(m)));
        for (const result of [union(a, b), subtract(a, b), intersect(a, b)]) assertNormal(result);
        expect(extent(subtract(a, b)) + extent(intersect(a, b))).toBe(extent(a));
        expect(moments.filter((m) => includes(a, m))).toEqual([...inA]);
      }),
      { numRuns: 5000 },
    );
  });

  it("assertNormal refuses what touches, overlaps, is empty or goes back", () => {
    for (const list of [
      [{ from: 1, to: 1 }],
      [{ from: 2, to: 1 }],
      [
        { from: 1, to: 3 },
        { from: 2, to: 4 },
      ],
      [
        { from: 1, to: 2 },
        { from: 2, to: 3 },
      ],
      [
        { from: 5, to: 6 },
        { from: 1, to: 2 },
      ],
      [{ from: Number.NaN, to: 2 }],
    ]) {
      expect(() => assertNormal(list)).toThrow("not disjoint");
    }
  });
});
