import fc from "fast-check";
import { expect, it } from "vitest";
import { union } from "../../src/model/time-range.ts";
import type { PageAnswer } from "../../src/rule/answer.ts";
import { findContradiction, interpret } from "../../src/rule/interpret.ts";
import { page, plainRules } from "../support/rule/pages.ts";
import { storedSeries } from "../support/rule/stored-series.ts";

/** A service with `records` (newest first) in pages of any size. */
interface Service {
  readonly records: readonly number[];
  readonly sizes: readonly number[];
  /** Cursors include the last record of the page before. */
  readonly isInclusive: boolean;
  readonly emptyAt: readonly number[];
  /** The last page has a cursor too. */
  readonly hasCursorAtEnd: boolean;
}

const someService: fc.Arbitrary<Service> = fc.record({
  records: fc
    .array(fc.integer({ min: 0, max: 60 }), { maxLength: 60 })
    .map((list) => list.sort((a, b) => b - a)),
  sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }),
  isInclusive: fc.boolean(),
  emptyAt: fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 2 }),
  hasCursorAtEnd: fc.boolean(),
});

function* pagesOf(
  { records, sizes, isInclusive, emptyAt, hasCursorAtEnd }: Service,
  until: number,
): Generator<Pick<PageAnswer, "timestamps" | "isLast">> {
  const visible = records.filter((ts) => ts <= until);
  let at = 0;
  for (let number = 0; at < visible.length || number === 0; number++) {
    if (emptyAt.includes(number)) yield { timestamps: [], isLast: false };
    const size = Math.max(sizes[number % sizes.length] ?? 1, isInclusive ? 2 : 1);
    const timestamps = visible.slice(Math.max(0, isInclusive ? at - 1 : at), at + size);
    at += size;
    const isLast = at >= visible.length;
    yield { timestamps, isLast: isLast && !hasCursorAtEnd };
    if (isLast && hasCursorAtEnd) yield { timestamps: [], isLast: true };
    if (isLast) return;
  }
}

const published = storedSeries({ publication: { publishedTo: Number.POSITIVE_INFINITY } });
const rules = { ...plainRules, period: 1, floor: 0 };

it("claims never exceed what the pages prove: after every page of a thousand random walks, each record of a claimed range was on a page", () => {
  const someGap = fc.tuple(fc.nat(60), fc.nat(60));
  fc.assert(
    fc.property(someService, someGap, fc.nat(30), (service, [a, b], stopAfter) => {
      const gap = { from: Math.min(a, b), to: Math.max(a, b) + 1 };
      let oldest: number | undefined;
      let claimed = union([], []);
      let isComplete = false;
      const seen: number[] = [];
      for (const [number, shown] of [...pagesOf(service, gap.to)].entries()) {
        if (number > stopAfter || isComplete) break;
        seen.push(...shown.timestamps);
        const provenFrom = Math.min(gap.to, oldest === undefined ? gap.to : oldest + 1);
        const isContinued = oldest !== undefined && oldest < gap.to;
        const answer = page(shown.timestamps, { gap, provenFrom, isContinued, isLast: shown.isLast });
        oldest = shown.timestamps.at(-1) ?? oldest;
        expect(findContradiction(answer)).toBeUndefined();
        const result = interpret(answer, published, [], rules);
        for (const { range } of result.claims) claimed = union(claimed, [range]);
        isComplete = result.isComplete;
        const isClaimed = (ts: number) => claimed.some(({ from, to }) => from <= ts && ts < to);
        // An inclusive cursor may repeat a record.
        for (const ts of service.records.filter(isClaimed)) {
          const count = (list: readonly number[]) => list.filter((each) => each === ts).length;
          expect(count(seen)).toBeGreaterThanOrEqual(count(service.records));
        }
      }
      for (const { from, to } of claimed) expect(from >= gap.from && to <= gap.to).toBe(true);
      if (isComplete) expect(claimed).toEqual([gap]);
      else expect(stopAfter).toBeLessThan(30);
    }),
    { numRuns: 1000 },
  );
});
