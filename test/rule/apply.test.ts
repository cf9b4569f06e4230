import { describe, expect, it } from "vitest";
import type { Claim, ClaimKind, SettledRange } from "../../src/rule/answer.ts";
import { applyClaim, applyPending, type LedgerChange } from "../../src/rule/apply.ts";
import { type StoredContent, storedSeries } from "../support/rule/stored-series.ts";

function claim(kind: ClaimKind, more: Partial<Claim> = {}): Claim {
  const range = { from: 1000, to: 2000 };
  return { kind, range, says: "empty", subject: [], because: "no records", ...more };
}

const end = (more: Partial<Claim> = {}) => claim("end", { because: "nothing older", ...more });
const covered = (from: number, to: number): SettledRange => ({
  from,
  to,
  proof: "empty",
  reason: "no records",
});

function show(change: LedgerChange): string {
  if (change.kind === "withdraw") return `withdraw ${change.timestamps}`;
  const { from, to } = change.range;
  if (change.kind === "retract") return `retract ${from}-${to}`;
  return `${change.proof} ${from}-${to}${change.proof === "rows" ? "" : ` ${change.reason}`}`;
}

describe("an accepted claim", () => {
  const oldest = { range: { from: 1000, to: 1501 }, subject: [1500] };

  it.each<[what: string, accepted: Claim, stored: StoredContent, changes: string[]]>([
    ["covers its rows", claim("records", { says: "rows" }), {}, ["rows 1000-2000"]],
    ["covers an empty range", claim("records"), {}, ["empty 1000-2000 no records"]],
    ["withdraws few rows", claim("gone", { says: "rows", subject: [7, 8] }), {}, ["withdraw 7,8"]],
    [
      "withdraws many, and covers their range",
      claim("withdrawn", { subject: [7] }),
      {},
      ["withdraw 7", "empty 1000-2000 no records"],
    ],
    [
      "covers the records beside them",
      claim("withdrawn", { says: "rows", subject: [7] }),
      {},
      ["withdraw 7", "rows 1000-2000"],
    ],
    ["ends below the oldest record", end(oldest), {}, ["rows 1500-1501", "empty 1000-1500 nothing older"]],
    [
      "ends below what is final, if the oldest record is not",
      end({ range: { from: 1000, to: 1400 }, subject: [1500] }),
      {},
      ["empty 1000-1400 nothing older"],
    ],
    ["ends everything without a record", end(), {}, ["empty 1000-2000 nothing older"]],
    [
      "leaves what is settled",
      end(),
      { ledger: [covered(1200, 1300)] },
      ["empty 1000-1200 nothing older", "empty 1300-2000 nothing older"],
    ],
    [
      "leaves open what has rows of REST",
      end(),
      { rows: [1100], ledger: [covered(1200, 1300)] },
      ["empty 1300-2000 nothing older"],
    ],
    [
      "withdraws previews",
      end(),
      { previews: [1100, 1200] },
      ["withdraw 1100,1200", "empty 1000-2000 nothing older"],
    ],
    [
      "loses what REST served before, with its rows",
      end({ ...oldest, lostTo: 1500 }),
      { rows: [1100] },
      ["rows 1500-1501", "lost 1000-1500 no longer served"],
    ],
    [
      "loses only what is open",
      end({ lostTo: 2000 }),
      { ledger: [covered(1200, 1300)] },
      ["lost 1000-1200 no longer served", "lost 1300-2000 no longer served"],
    ],
    [
      "is empty above what is lost",
      end({ lostTo: 1801 }),
      {},
      ["lost 1000-1801 no longer served", "empty 1801-2000 nothing older"],
    ],
    ["is empty, if all that is lost is below", end({ lostTo: 501 }), {}, ["empty 1000-2000 nothing older"]],
    ["is lost, if nothing is above", end({ lostTo: 3000 }), {}, ["lost 1000-2000 no longer served"]],
    [
      "settles an end that moved alike",
      { ...end({ ...oldest, lostTo: 1500 }), kind: "end moved" },
      {},
      ["rows 1500-1501", "lost 1000-1500 no longer served"],
    ],
    [
      "keeps the reason of an index that is not found",
      claim("not found", { because: "not found", lostTo: 1400 }),
      { rows: [1399] },
      ["lost 1000-1400 not found", "empty 1400-2000 not found"],
    ],
    [
      "settles what is still absent",
      claim("still absent", { because: "not found" }),
      { ledger: [covered(500, 1000)] },
      ["empty 1000-2000 not found"],
    ],
  ])("%s", (_, accepted, stored, changes) => {
    expect(applyClaim(accepted, storedSeries(stored)).map(show)).toEqual(changes);
  });
});

describe("a pending claim", () => {
  it.each<[kind: ClaimKind, changes: string[]]>([
    // Rows that may be gone are not covered.
    ["withdrawn", ["retract 10-50"]],
    ["end", []],
    ["end moved", []],
    ["not found", []],
  ])("%s changes %j", (kind, changes) => {
    const counts = { subject: [], answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null };
    expect(applyPending({ kind, range: { from: 10, to: 50 }, ...counts }).map(show)).toEqual(changes);
  });
});
