import { describe, expect, it } from "vitest";
import {
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
  type PageAnswer,
  type PendingClaim,
} from "../../src/rule/answer.ts";
import type { LedgerChange } from "../../src/rule/apply.ts";
import { decideNotFound, decidePage, type Known } from "../../src/rule/decide.ts";
import type { PageAlarm } from "../../src/rule/interpret.ts";
import { page, plainRules } from "../support/rule/pages.ts";
import { type StoredContent, storedSeries } from "../support/rule/stored-series.ts";

const NOW = 1e6;
const published = { publishedTo: Number.POSITIVE_INFINITY };

function know(stored: StoredContent, more: Partial<Known> = {}): Known {
  return {
    stored: storedSeries({ publication: published, ...stored }),
    pending: [],
    rules: plainRules,
    confirmation: { answers: 1, over: 0 },
    now: NOW,
    ...more,
  };
}

function show(change: LedgerChange): string {
  if (change.kind === "withdraw") return `withdraw ${change.timestamps}`;
  const { from, to } = change.range;
  return `${change.kind === "retract" ? "open" : change.proof} ${from}-${to}`;
}

interface Doubts {
  readonly contradiction?: PageAlarm;
  readonly isDoubted?: boolean;
}

function decide(answer: PageAnswer, known: Known, { contradiction, isDoubted = false }: Doubts = {}) {
  const decided = decidePage(answer, known, { contradiction, hasConflict: () => isDoubted });
  return { ...decided, changes: decided.changes.map(show) };
}

const empty = (from: number, to: number, reason = NO_RECORDS) => ({
  ...{ from, to, reason },
  proof: "empty" as const,
});
const pendingOf = (kind: PendingClaim["kind"], from: number, to: number): PendingClaim => ({
  ...{ kind, range: { from, to }, subject: [] },
  ...{ answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null },
});
const stale = { isStale: true } as const;

describe("what a page changes", () => {
  it("is first what it disproves, then each claim applied to what those before it leave", () => {
    const known = know({ rows: [1900, 1700], previews: [1200], ledger: [empty(1300, 1600)] });
    const decision = decide(page([1500, 1400], { isLast: true }), known);
    expect(decision.changes).toEqual([
      "open 1300-1600",
      "withdraw 1700,1900",
      "rows 1401-2000",
      "rows 1400-1401",
      "withdraw 1200",
      "empty 1000-1400",
    ]);
    expect(decision).toMatchObject({ hasReopened: true, alarm: undefined });
  });

  it("leaves open what a pending claim is about", () => {
    const rows = [1900, 1800, 1700, 1600];
    const decision = decide(page([1950, 1100]), know({ rows }, { confirmation: { answers: 3, over: 1 } }));
    expect(decision.changes).toEqual(["open 1600-1950", "rows 1950-2000"]);
    expect(decision.recorded).toMatchObject([{ kind: "withdrawn", subject: [...rows].reverse() }]);
  });

  it("is only what its rows disprove, if it contradicts itself", () => {
    const known = know({ ledger: [empty(1300, 1600)] }, { pending: [pendingOf("end", 0, 1600)] });
    const decided = decide(page([1500, 1400]), known, { contradiction: "disordered" });
    expect(decided).toMatchObject({ changes: ["open 1300-1600"], dropped: [], alarm: "disordered" });
    const newer = decide(page([1500], { provenFrom: 1400 }), know({}), {
      contradiction: "newer_than_proven",
    });
    expect(newer).toMatchObject({ changes: ["open 1400-2000"], hasReopened: false, proven: undefined });
    const implausible = decide(page([], { rows: [1450] }), known, { contradiction: "mass_rejection" });
    expect(implausible.changes).toEqual(["open 1300-1600"]);
  });

  it("is nothing about claims, if it is stale: it settles its own records, unless a stored row differs", () => {
    const known = know({}, { pending: [pendingOf("end", 0, 1600), pendingOf("not found", 0, 1600)] });
    expect(decide(page([1900, 1500]), known).dropped).toHaveLength(2);
    expect(decide(page([1900, 1500], stale), known)).toMatchObject({
      changes: ["rows 1501-2000"],
      dropped: [],
    });
    expect(decide(page([1900, 1500], stale), known, { isDoubted: true })).toMatchObject({
      ...{ changes: [], alarm: "older_than_stored", proven: undefined, isComplete: false },
    });
    expect(decide(page([999], stale), known)).toMatchObject({
      changes: [],
      proven: undefined,
      isComplete: false,
    });
    expect(decide(page([1500]), know({}), { isDoubted: true }).alarm).toBeUndefined();
  });

  it("closes again what it opened, if that is below its end", () => {
    const known = know({ ledger: [empty(500, 1600, NOTHING_OLDER)], targetStart: 500 });
    const changes = ["open 500-1600", "rows 1501-2000", "rows 1500-1501", "empty 500-1500"];
    const gap = { from: 1000, to: 2000 };
    expect(decide(page([1900, 1500], { isLast: true, gap }), known).changes).toEqual(changes);
  });
});

describe("an answer that the index does not exist", () => {
  const range = { from: 1000, to: 2000 };

  it("settles what is open", () => {
    expect(decideNotFound(range, know({ ledger: [empty(1200, 1300)] })).changes).toEqual([
      { kind: "settle", range: { from: 1000, to: 1200 }, proof: "empty", reason: NOT_FOUND },
      { kind: "settle", range: { from: 1300, to: 2000 }, proof: "empty", reason: NOT_FOUND },
    ]);
  });

  it("says nothing of a range that is not past by this machine's clock", () => {
    const rules = { ...plainRules, present: 900 };
    const nothing = { changes: [], touched: [], recorded: [], dropped: [] };
    expect(decideNotFound(range, know({}, { rules, confirmation: { answers: 2, over: 1 } }))).toEqual(
      nothing,
    );
  });
});
