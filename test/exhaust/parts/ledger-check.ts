import type { Micros } from "../../../src/model/time.ts";
import {
  AGED_OUT_REASON,
  NO_RECORDS,
  RETENTION_REASON,
  type SettledRange,
} from "../../../src/rule/answer.ts";
import {
  assertValidLedger,
  changeRanges,
  disprovedRanges,
  joinTouched,
  type LedgerChange,
  loseAgedOut,
  loseExpired,
  reopenAt,
} from "../../../src/rule/apply.ts";
import { isIn, type Ledger, touchedBy } from "../memory-ledger.ts";
import { combinations, type PartCheck, type PartResult, tryAll, tryCases } from "./part-check.ts";
import { type Moments, toLedger, toMoments } from "./stored-content.ts";

const LENGTH = 4;
const states = [undefined, "rows", `empty ${NO_RECORDS}`, `lost ${AGED_OUT_REASON}`];
const everyLedger = [...combinations<Moments & object>([states, states, states, states] as never)].map(
  (each) => Object.values(each) as Moments,
);
const ranges = Array.from({ length: LENGTH }, (_, from) =>
  Array.from({ length: LENGTH - from + 1 }, (_, length) => ({ from, to: from + length })),
).flat();

/** As the warehouse makes the changes: each replaces the ranges that it touches. */
function apply(ledger: Ledger, changes: readonly LedgerChange[]): Moments {
  const touched = joinTouched(changes, (range) => touchedBy(ledger, range));
  const others = ledger.filter((each) => !touched.includes(each));
  const changed = changes.reduce((before, change) => {
    const ranges = changeRanges(before, change);
    assertValidLedger(ranges);
    // The warehouse would write what stands there already.
    if (change.kind === "settle" && ranges !== before && JSON.stringify(ranges) === JSON.stringify(before))
      throw new Error(`${JSON.stringify([before, change])} changes nothing, and is written`);
    return ranges;
  }, touched);
  const after = [...others, ...changed].sort((a, b) => a.from - b.from);
  assertValidLedger(after);
  return toMoments(after, LENGTH);
}

type Expected = (state: string | undefined, ts: Micros) => string | undefined;

/** Makes the changes of each case in every ledger, and expects each moment to be what `expected` says. */
function tryChanges(
  find: (ledger: Ledger) => Iterable<readonly [readonly LedgerChange[], Expected]>,
): PartResult {
  const cases = everyLedger.flatMap((moments) => {
    const ledger = toLedger(moments);
    return [...find(ledger)].map(([changes, expected]) => ({ moments, ledger, changes, expected }));
  });
  return tryAll(cases, ({ moments, ledger, changes, expected }) => [
    apply(ledger, changes),
    moments.map(expected),
  ]);
}

const isCovered = (state: string | undefined) => state !== undefined && !state.startsWith("lost");
const lost = (reason: string) => `lost ${reason}`;

function tryRanges(): PartResult {
  return tryChanges(function* () {
    for (const range of ranges) {
      const inside =
        (expected: Expected): Expected =>
        (state, ts) =>
          isIn(range, ts) ? expected(state, ts) : state;
      yield [[{ kind: "retract", range }], inside(() => undefined)];
      yield [loseExpired(range), inside(() => lost(RETENTION_REASON))];
      if (range.from === range.to) continue;
      yield [loseAgedOut([range]), inside((state) => (isCovered(state) ? state : lost(AGED_OUT_REASON)))];
      for (const proof of ["rows", "empty"] as const) {
        const reason = proof === "rows" ? null : "other";
        const state = proof === "rows" ? "rows" : "empty other";
        yield [[{ kind: "settle", range, proof, reason }], inside(() => state)];
        yield [
          [
            { kind: "settle", range, proof, reason },
            { kind: "retract", range: { from: 0, to: 1 } },
          ],
          (before, ts) => (ts === 0 ? undefined : inside(() => state)(before, ts)),
        ];
      }
    }
  });
}

/** An empty range is open as a whole once a row is in it; of a range of rows only the moment of a tick. */
function tryTicks(): PartResult {
  return tryChanges(function* (ledger) {
    for (let ts = 0; ts < LENGTH; ts++) {
      const empty = ledger.find((range) => range.proof === "empty" && isIn(range, ts));
      const opened = empty ?? { from: ts, to: ts + 1 };
      const open: Expected = (state, at) => (isIn(opened, at) && isCovered(state) ? undefined : state);
      yield [reopenAt(ts, touchedBy(ledger, { from: ts, to: ts })), open];
      const disproved = disprovedRanges(ledger, [ts]).map(
        (range): LedgerChange => ({ kind: "retract", range }),
      );
      yield [disproved, empty ? open : (state) => state];
    }
  });
}

/** Ranges that are empty, overlap, are out of order, or stand apart where they are one. */
function tryValid(): PartResult {
  const reasons = [NO_RECORDS, "other"];
  const each = [...combinations({ from: [0, 1, 2], to: [0, 1, 2, 3], reason: reasons })].map(
    (range): SettledRange => ({ ...range, proof: "empty" }),
  );
  const cases = [...combinations<readonly SettledRange[] & object>([each, each, each] as never)].map(
    (ledger) => Object.values(ledger) as SettledRange[],
  );
  const fits = (range: SettledRange, before: SettledRange | undefined) =>
    range.from < range.to &&
    (!before || before.to < range.from || (before.to === range.from && before.reason !== range.reason));
  return tryCases(cases, (ledger) => {
    const isValid = ledger.every((range, at) => fits(range, ledger[at - 1]));
    let said = "";
    try {
      assertValidLedger(ledger);
    } catch (error) {
      said = (error as Error).message;
    }
    return (said === "") === isValid ? undefined : `is ${isValid ? said : "accepted"}`;
  });
}

export const ledgerChecks: readonly PartCheck[] = [
  { name: "assertValidLedger", run: tryValid },
  { name: "changeRanges", run: tryRanges },
  { name: "reopenAt", run: tryTicks },
];
