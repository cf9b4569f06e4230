import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TimeRange } from "../../src/model/time-range.ts";
import type { Proof, SettledRange } from "../../src/rule/answer.ts";
import { assertValidLedger, changeRanges } from "../../src/rule/apply.ts";

const range = (
  from: number,
  to: number,
  proof: Proof = "empty",
  reason: string | null = null,
): SettledRange => ({ ...{ from, to, proof, reason } });

const MAX_TS = 30;
const someRange = fc
  .tuple(fc.integer({ min: 0, max: MAX_TS }), fc.integer({ min: 1, max: 12 }))
  .map(([from, length]): TimeRange => ({ from, to: Math.min(MAX_TS + 1, from + length) }));

type Step = TimeRange &
  (
    | { readonly act: "settle" | "replace"; readonly proof: Proof; readonly reason: string | null }
    | { readonly act: "retract" }
  );

const settlements = fc.constantFrom(
  { proof: "rows" as const, reason: null },
  { proof: "empty" as const, reason: null },
  { proof: "empty" as const, reason: "not found" },
  { proof: "lost" as const, reason: "aged out" },
);
const someStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(someRange, settlements).map(([at, how]): Step => ({ act: "settle", ...at, ...how })),
  },
  {
    weight: 2,
    // Rows are deleted on purpose, whatever was settled.
    arbitrary: someRange.map((at): Step => ({ act: "replace", ...at, proof: "lost", reason: "retention" })),
  },
  { weight: 3, arbitrary: someRange.map((at): Step => ({ act: "retract", ...at })) },
);

/** The state of each timestamp after the steps: a slow but obvious model. */
function applyNaively(steps: readonly Step[]): (string | undefined)[] {
  const states: (string | undefined)[] = Array(MAX_TS + 1).fill(undefined);
  for (const step of steps)
    for (let ts = step.from; ts < step.to; ts++) {
      if (step.act === "retract") {
        states[ts] = undefined;
        continue;
      }
      const before = states[ts];
      const isCovered = before !== undefined && !before.startsWith("lost");
      const stands = step.act === "settle" && step.proof === "lost" && isCovered;
      if (!stands) states[ts] = `${step.proof} ${step.reason}`;
    }
  return states;
}

const settling = ({ from, to }: TimeRange, proof: Proof, reason: string | null) =>
  ({ kind: "settle", range: { from, to }, proof, reason }) as const;

function applyStep(ledger: readonly SettledRange[], step: Step): readonly SettledRange[] {
  const isTouched = ({ from, to }: SettledRange) => from <= step.to && to >= step.from;
  const touched = ledger.filter(isTouched);
  const changed =
    step.act === "retract"
      ? changeRanges(touched, { kind: "retract", range: step })
      : changeRanges(touched, {
          ...settling(step, step.proof, step.reason),
          isDeleted: step.act === "replace",
        });
  return [...ledger.filter((each) => !isTouched(each)), ...changed].sort((a, b) => a.from - b.from);
}

describe("the ranges of a ledger", () => {
  it("equal a naive model after random steps, disjoint and merged", () => {
    fc.assert(
      fc.property(fc.array(someStep, { maxLength: 20 }), (steps) => {
        const ledger = steps.reduce(applyStep, [] as readonly SettledRange[]);
        assertValidLedger(ledger);
        const states = Array.from({ length: MAX_TS + 1 }, (_, ts) => {
          const found = ledger.find(({ from, to }) => from <= ts && ts < to);
          return found && `${found.proof} ${found.reason}`;
        });
        expect(states).toEqual(applyNaively(steps));
        const changes = states.filter((text, i) => text !== undefined && text !== states[i - 1]).length;
        expect(ledger).toHaveLength(changes);
      }),
      { numRuns: 1000 },
    );
  });

  it("stay the same list, if they have the change already", () => {
    const ledger = [range(0, 50, "rows")];
    expect(changeRanges(ledger, settling({ from: 10, to: 50 }, "rows", null))).toBe(ledger);
    expect(changeRanges(ledger, settling({ from: 10, to: 50 }, "lost", "aged out"))).toBe(ledger);
    expect(changeRanges(ledger, settling({ from: 10, to: 51 }, "rows", null))).toEqual([
      range(0, 51, "rows"),
    ]);
  });
});

describe("a valid ledger", () => {
  it.each<[what: string, ranges: SettledRange[]]>([
    ["nothing", []],
    ["ranges apart", [range(0, 5), range(7, 9)]],
    ["touching ranges with different reasons", [range(0, 5), range(5, 9, "empty", "x"), range(9, 12)]],
    ["touching ranges with different proofs", [range(0, 5, "empty", "x"), range(5, 9, "lost", "x")]],
  ])("may have %s", (_, ranges) => {
    expect(() => assertValidLedger(ranges)).not.toThrow();
  });

  it.each<[what: string, ranges: SettledRange[]]>([
    ["touching ranges that are equal", [range(0, 5), range(5, 9)]],
    ["or have an equal reason", [range(0, 5, "empty", "x"), range(5, 9, "empty", "x")]],
    ["overlaps", [range(0, 5), range(4, 9, "empty", "x")]],
    ["another order", [range(5, 9), range(0, 4, "empty", "x")]],
    ["a range of no length", [range(5, 5)]],
    ["a range backwards", [range(0, 3), range(6, 5, "empty", "x")]],
  ])("has no %s", (_, ranges) => {
    expect(() => assertValidLedger(ranges)).toThrow();
  });
});
