import { describe, expect, it } from "vitest";
import type { Proof } from "../../src/rule/answer.ts";
import { disprovedRanges, loseAgedOut, loseExpired, reopen, reopenAt } from "../../src/rule/apply.ts";

const settled = (from: number, to: number, proof: Proof, reason: string | null = null) => ({
  from,
  to,
  proof,
  reason,
});
const ledger = [
  settled(0, 10, "empty", "no records"),
  settled(10, 20, "rows"),
  settled(20, 30, "lost", "aged out"),
  settled(30, 40, "empty", "no records"),
];
const retracts = (...ranges: [from: number, to: number][]) =>
  ranges.map(([from, to]) => ({ kind: "retract", range: { from, to } }));

describe("a finding", () => {
  it("of rows disproves every empty range that has one", () => {
    const disprovedBy = (...rows: number[]) => disprovedRanges(ledger, rows);
    expect([9, 10, 20, 29, 40].map((ts) => disprovedBy(ts).length)).toEqual([1, 0, 0, 0, 0]);
    expect(disprovedBy(3, 4, 15, 25, 30)).toEqual([ledger[0], ledger[3]]);
  });

  it("of a live tick opens an empty range, or its moment of a range of rows", () => {
    expect(reopenAt(9, ledger)).toEqual(retracts([0, 10]));
    expect([10, 19].map((ts) => reopenAt(ts, ledger))).toEqual([retracts([10, 11]), retracts([19, 20])]);
    expect([20, 29, 40].flatMap((ts) => reopenAt(ts, ledger))).toEqual([]);
  });

  it("opens what was settled wrongly", () => {
    expect(reopen([settled(1, 2, "rows"), { from: 5, to: 7 }])).toEqual(retracts([1, 2], [5, 7]));
  });

  it("of a range that left the window or the retention loses it, the latter even where it was covered", () => {
    const range = { from: 5, to: 7 };
    const lost = { kind: "settle", range, proof: "lost" };
    expect(loseAgedOut([range])).toEqual([{ ...lost, reason: "aged out" }]);
    expect(loseExpired(range)).toEqual([{ ...lost, reason: "retention", isDeleted: true }]);
    expect([loseAgedOut([]), loseExpired({ from: 7, to: 7 })]).toEqual([[], []]);
  });
});
