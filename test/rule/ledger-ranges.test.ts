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

const settling = ({ from, to }: TimeRange, proof: Proof, reason: string | null) =>
  ({ kind: "settle", range: { from, to }, proof, reason }) as const;

describe("the ranges of a ledger", () => {
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
