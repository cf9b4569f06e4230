import fc from "fast-check";
import { expect, it } from "vitest";
import type { SettledRange } from "../../src/rule/answer.ts";
import { assertValidLedger } from "../../src/rule/apply.ts";
import { compareSnapshots, findLacking, spliceLedger } from "../../src/share/ledger-difference.ts";

const proofs = [
  { proof: "rows", reason: null },
  { proof: "empty", reason: "nothing older" },
  { proof: "lost", reason: "aged out" },
  undefined,
] as const;

/** A ledger from one state per unit of time. */
const ledger = fc.array(fc.constantFrom(...proofs), { maxLength: 30 }).map((units) => toLedger(units));

function toLedger(units: readonly (typeof proofs)[number][]): SettledRange[] {
  const ranges: SettledRange[] = [];
  units.forEach((unit, from) => {
    const last = ranges.at(-1);
    if (!unit) return;
    if (last && last.to === from && last.proof === unit.proof)
      ranges[ranges.length - 1] = { ...last, to: from + 1 };
    else ranges.push({ from, to: from + 1, ...unit });
  });
  return ranges;
}

const at = (ranges: readonly SettledRange[], ts: number) =>
  ranges.find(({ from, to }) => from <= ts && ts < to)?.proof;

it("enters what is lacking, and leaves what lies between", () => {
  fc.assert(
    fc.property(ledger, ledger, (local, shared) => {
      let result: readonly SettledRange[] = shared;
      for (const piece of findLacking(local, shared)) ({ result } = spliceLedger(result, piece, local));
      assertValidLedger(result);
      for (let ts = 0; ts < 31; ts++) {
        const [here, there] = [at(local, ts), at(shared, ts)];
        expect(at(result, ts)).toBe(
          here === undefined || (here === "lost" && there !== undefined) ? there : here,
        );
      }
      expect(findLacking(local, result)).toEqual([]);
    }),
  );
});

it("names the snapshots that only this file has, below the newest there or when it is too far behind", () => {
  const minutes = (ranges: readonly SettledRange[]) =>
    ranges.map((range) => ({ ...range, from: range.from * 60e6, to: range.to * 60e6 }));
  const pruned = { proof: "lost", reason: "retention" } as const;
  const claimed = { proof: "rows", reason: "seen by us" } as const;
  const sharedLedger = fc
    .array(fc.constantFrom(...proofs, pruned, claimed), { maxLength: 30 })
    .map((units) =>
      units.flatMap((unit, from): SettledRange[] => (unit ? [{ from, to: from + 1, ...unit }] : [])),
    );
  fc.assert(
    fc.property(ledger, sharedLedger, (local, shared) => {
      const { seen, takenBack } = compareSnapshots(minutes(local), minutes(shared), claimed.reason);
      const isKnown = ({ proof, reason }: SettledRange) => proof !== "lost" || reason === "retention";
      const newest = Math.max(0, ...shared.filter(isKnown).map(({ to }) => to));
      const own = Math.max(0, ...local.filter(({ proof }) => proof !== "lost").map(({ to }) => to));
      for (let ts = 0; ts < 31; ts++) {
        const isThere = shared.some((range) => isKnown(range) && range.from === ts);
        const here = at(local, ts);
        const isExpected =
          (here === "rows" || here === "empty") && !isThere && (ts < newest || ts < own - 15);
        expect(at(seen, ts * 60e6)).toBe(isExpected ? here : undefined);
        const isOurs = shared.some(({ from, reason }) => from === ts && reason === claimed.reason);
        const isTakenBack = takenBack.some(({ from, to }) => from <= ts * 60e6 && ts * 60e6 < to);
        expect(isTakenBack).toBe(isOurs && here !== "rows" && here !== "empty");
      }
    }),
  );
});

it("replaces a part of a ledger, and merges what touches", () => {
  fc.assert(
    fc.property(
      ledger,
      ledger,
      fc.nat(30),
      fc.integer({ min: 1, max: 15 }),
      (before, content, from, length) => {
        const range = { from, to: from + length };
        const { removed, added, result } = spliceLedger(before, range, content);
        assertValidLedger(result);
        for (let ts = 0; ts < 50; ts++)
          expect(at(result, ts)).toBe(at(from <= ts && ts < range.to ? content : before, ts));
        const applied = [...before.filter((each) => !removed.includes(each.from)), ...added].sort(
          (a, b) => a.from - b.from,
        );
        expect(applied).toEqual(result);
      },
    ),
  );
});
