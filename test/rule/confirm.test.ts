import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY as DAY } from "../../src/model/time.ts";
import type { TimeRange } from "../../src/model/time-range.ts";
import { type Claim, type ClaimKind, NOT_FOUND, type PendingClaim } from "../../src/rule/answer.ts";
import { confirm, type Evidence, isIncident, nextAskAt } from "../../src/rule/confirm.ts";

const rules = { answers: 3, over: 100 };

function claim(kind: ClaimKind, from = 10, to = 50, subject: readonly number[] = []): Claim {
  const says = kind === "records" || kind === "gone" ? "rows" : "empty";
  return { kind, range: { from, to }, says, subject, because: kind === "not found" ? NOT_FOUND : "a reason" };
}

function pending(kind: ClaimKind, more: Partial<PendingClaim> = {}): PendingClaim {
  const range = { from: 10, to: 50 };
  return { kind, range, subject: [], answers: 1, firstAt: 1000, lastAt: 1000, acceptedAt: null, ...more };
}

function answer(claims: readonly Claim[], now: number, more: Partial<Evidence> = {}): Evidence {
  return { claims, shown: undefined, oldest: undefined, windowStart: Number.MIN_SAFE_INTEGER, now, ...more };
}

/** Gives the rule one answer after the other, and returns what it accepted and stores. */
function repeat(answers: readonly Evidence[], policy = rules) {
  let stored: readonly PendingClaim[] = [];
  let accepted: readonly Claim[] = [];
  for (const each of answers) {
    const result = confirm(each, stored, policy);
    stored = [...stored.filter((before) => !result.dropped.includes(before)), ...result.recorded];
    accepted = result.accepted;
  }
  return { stored, accepted };
}

describe("how often the service must say it", () => {
  it.each<[kind: ClaimKind, at: number[], isAccepted: boolean]>([
    ["records", [0], true],
    ["gone", [0], true],
    ["still absent", [0], true],
    ["end", [0], false],
    ["end", [0, 99], false],
    ["end", [0, 100], true],
    ["not found", [0, 99], false],
    ["not found", [0, 100], true],
    ["withdrawn", [0, 100], false],
    ["withdrawn", [0, 50, 99], false],
    ["withdrawn", [0, 50, 100], true],
    ["end moved", [0, 100], false],
    ["end moved", [0, 1, 2, 99], false],
    ["end moved", [0, 1, 2, 100], true],
  ])("%s at %j: %j", (kind, at, isAccepted) => {
    const shown = { shown: { from: 0, to: 100 } };
    const answers = at.map((now) => answer([claim(kind)], now, shown));
    expect(repeat(answers).accepted.length === 1).toBe(isAccepted);
  });

  it("is once, if the operator says so", () => {
    const atOnce = { answers: 1, over: 100 };
    for (const kind of ["end", "not found", "withdrawn", "end moved"] as const)
      expect(repeat([answer([claim(kind)], 0)], atOnce).accepted).toHaveLength(1);
  });

  it("counts the answers, and stores an incident that was accepted", () => {
    const at = (now: number) =>
      answer([claim("withdrawn", 10, 50, [20])], now, { shown: { from: 0, to: 99 } });
    const counts = { subject: [20], range: { from: 10, to: 50 }, firstAt: 0 };
    expect(repeat([at(0), at(60)]).stored).toEqual([
      { kind: "withdrawn", ...counts, answers: 2, lastAt: 60, acceptedAt: null },
    ]);
    expect(repeat([at(0), at(60), at(120)]).stored).toEqual([
      { kind: "withdrawn", ...counts, answers: 3, lastAt: 120, acceptedAt: 120 },
    ]);
    // An end contradicts nobody: the ledger has it.
    expect(repeat([answer([claim("end")], 0), answer([claim("end")], 100)]).stored).toEqual([]);
  });

  it("is asked again in equal steps", () => {
    expect(nextAskAt({ kind: "withdrawn", lastAt: 1000 }, rules)).toBe(1050);
    expect(nextAskAt({ kind: "end", lastAt: 1000 }, rules)).toBe(1100);
    expect(nextAskAt({ kind: "end", lastAt: 1000 }, { answers: 1, over: 0 })).toBe(1000);
    const incidents = (["end", "end moved", "withdrawn", "not found", "gone"] as const).filter(isIncident);
    expect(incidents).toEqual(["end moved", "withdrawn"]);
  });
});

/** What becomes of a pending claim: how many answers it has; undefined: it is gone. */
function answersAfter(before: PendingClaim, evidence: Evidence): number | undefined {
  const { recorded, dropped } = confirm(evidence, [before], rules);
  const entry = recorded.find(({ kind, range }) => kind === before.kind && range.from === before.range.from);
  return entry?.answers ?? (dropped.includes(before) ? undefined : before.answers);
}

describe("an end of the history", () => {
  const end = pending("end", { subject: [49] });
  const at = (subject: readonly number[], to = 50, more: Partial<Evidence> = {}) =>
    answer([claim("end", 10, to, subject)], 1050, { oldest: subject[0], ...more });

  it.each<[what: string, evidence: Evidence, answers: number | undefined]>([
    ["is repeated by an equal one", at([49]), 2],
    ["begins anew with another oldest record", at([39], 40), 1],
    ["begins anew, if the records end higher", at([59], 60), 1],
    ["stays, if a walk below it has no record", at([], 40), 1],
    ["stays, if a page ends above", answer([], 1050, { oldest: 49 }), 1],
    ["is disproved by an older record", answer([], 1050, { oldest: 48 }), undefined],
    ["stays without any record", answer([], 1050), 1],
    ["is disproved by an end that moved", answer([claim("end moved")], 1050), undefined],
    ["stays beside a hole", answer([claim("withdrawn", 60, 70, [65])], 1050), 1],
  ])("%s", (_, evidence, answers) => {
    expect(answersAfter(end, evidence)).toBe(answers);
  });

  const acceptedOf = (first: Claim, second: Claim) =>
    repeat([answer([first], 0), answer([second], 100)]).accepted.map(({ range }) => range);

  it("below a record counts for what both answers are about", () => {
    const first = claim("end", 10, 50, [80]);
    expect(acceptedOf(first, claim("end", 10, 81, [80]))).toEqual([{ from: 10, to: 50 }]);
    expect(acceptedOf(first, claim("end", 20, 50, [80]))).toEqual([{ from: 20, to: 50 }]);
  });

  it("of a history without a record counts for the time since it was first asked about", () => {
    const accepted = (second: Claim) => acceptedOf(claim("end", 10, 50), second);
    expect(accepted(claim("end", 10, 70))).toEqual([{ from: 10, to: 70 }]);
    expect(accepted(claim("end", 20, 50))).toEqual([{ from: 20, to: 50 }]);
    // A smaller part does not count for the whole.
    expect(accepted(claim("end", 10, 40))).toEqual([]);
  });
});

describe("an end that has moved up", () => {
  it("is one claim, whichever gaps the answers were about", () => {
    const at = (from: number, to: number, now: number) => answer([claim("end moved", from, to)], now);
    const { stored, accepted } = repeat([at(10, 50, 0), at(5, 40, 50), at(20, 60, 100)]);
    expect(stored).toMatchObject([{ range: { from: 5, to: 60 }, answers: 3, acceptedAt: 100 }]);
    expect(accepted[0]?.range).toEqual({ from: 5, to: 60 });
  });

  it("stays above a walk below it that has no record", () => {
    const at = (to: number, subject: readonly number[], now: number) =>
      answer([claim("end moved", 10, to, subject)], now, { oldest: subject[0] });
    const answers = [at(50, [49], 0), at(40, [], 50), at(50, [49], 100)];
    expect(repeat(answers.slice(0, 2)).stored).toMatchObject([{ range: { to: 50 }, subject: [49] }]);
    expect(repeat(answers).stored).toMatchObject([{ answers: 3, acceptedAt: 100 }]);
    expect(repeat([...answers.slice(0, 2), at(40, [], 100)]).accepted).toMatchObject([{ subject: [49] }]);
  });

  it.each<[what: string, to: number, answers: number]>([
    ["moves on with time, and a day at once", 50 + 40 + DAY, 2],
    ["is another one, if it is faster", 50 + 40 + DAY + 1, 1],
    ["may move down", 20, 2],
  ])("%s", (_, to, answers) => {
    expect(answersAfter(pending("end moved"), answer([claim("end moved", 10, to)], 1040))).toBe(answers);
  });

  it("that was accepted moves on without being repeated", () => {
    const before = pending("end moved", { answers: 3, firstAt: 900, acceptedAt: 1000 });
    const { accepted, recorded } = confirm(answer([claim("end moved", 20, 90)], 1040), [before], rules);
    expect(accepted).toHaveLength(1);
    expect(recorded).toMatchObject([{ range: { from: 10, to: 90 }, answers: 4, acceptedAt: 1040 }]);
  });

  it.each<[what: string, evidence: Evidence, answers: number | undefined]>([
    ["is disproved by a record below it", answer([], 1050, { oldest: 39 }), undefined],
    ["stays, if a page ends at its oldest record", answer([], 1050, { oldest: 40 }), 1],
    ["is disproved by an end that has not moved", answer([claim("end")], 1050), undefined],
    ["begins anew with an older record", answer([claim("end moved", 10, 40, [39])], 1050, { oldest: 39 }), 1],
  ])("%s", (_, evidence, answers) => {
    expect(answersAfter(pending("end moved", { subject: [40] }), evidence)).toBe(answers);
  });
});

describe("H5: rows that are withdrawn", () => {
  const before = pending("withdrawn", { subject: [20, 30, 40], answers: 2 });
  const all = { from: 0, to: 100 };
  const lacks = (
    subject: readonly number[],
    shown: TimeRange | undefined = all,
    more: Partial<Evidence> = {},
  ) => answer([claim("withdrawn", 10, 50, subject)], 1050, { shown, ...more });
  const windowStart = 25;

  it.each<[what: string, evidence: Evidence, answers: number | undefined]>([
    ["are repeated by an equal answer", lacks([20, 30, 40]), 3],
    ["are counted anew, if one is back", lacks([20, 40]), 1],
    ["are counted anew, if another one is missing", lacks([20, 25, 30, 40]), 1],
    ["are not judged by a page that shows a part of them", lacks([30, 40], { from: 25, to: 100 }), 2],
    ["are counted anew, if that part differs", lacks([40], { from: 25, to: 100 }), 1],
    [
      "keep their answers, while the oldest leave the window",
      lacks([30, 40], { from: 25, to: 100 }, { windowStart }),
      3,
    ],
    ["are counted anew at the edge, if one is back", lacks([40], { from: 25, to: 100 }, { windowStart }), 1],
    ["are back, if a page shows them all", answer([], 1050, { shown: all }), undefined],
    [
      "are not back, if a page shows none of their moments",
      answer([], 1050, { shown: { from: 41, to: 100 } }),
      2,
    ],
    ["are not back without a page", answer([], 1050), 2],
    [
      "stay, while others are missing elsewhere",
      answer([claim("withdrawn", 60, 70, [65])], 1050, { shown: { from: 50, to: 100 } }),
      2,
    ],
  ])("%s", (_, evidence, answers) => {
    expect(answersAfter(before, evidence)).toBe(answers);
  });

  it("are several claims, if they are in several holes", () => {
    const { stored } = repeat([
      lacks([20]),
      answer([claim("withdrawn", 10, 50, [20]), claim("withdrawn", 60, 70, [65])], 1100, { shown: all }),
    ]);
    expect(stored.map(({ range, answers }) => [range.from, answers])).toEqual([
      [10, 2],
      [60, 1],
    ]);
  });

  it.each<[kind: ClaimKind, to: number, isDropped: boolean]>([
    ["still absent", 50, true],
    ["still absent", 49, false],
    ["records", 100, false],
    ["end", 100, false],
  ])("end with %s up to %d: %j", (kind, to, isDropped) => {
    // Not while that is pending itself.
    expect(confirm(answer([claim(kind, 0, to)], 1050), [before], rules).dropped.includes(before)).toBe(
      isDropped,
    );
  });

  it.each<ClaimKind>(["end", "end moved", "not found"])("end with the %s of all their time", (kind) => {
    const { dropped } = confirm(answer([claim(kind, 0, 100)], 1050), [before], { answers: 1, over: 0 });
    expect(dropped).toContain(before);
  });
});

describe("an index that is not found", () => {
  it("is one claim about all of its time, which any page disproves", () => {
    const at = (from: number, to: number, now: number) => answer([claim("not found", from, to)], now);
    expect(repeat([at(10, 50, 0), at(40, 90, 100)]).accepted[0]?.range).toEqual({ from: 10, to: 90 });
    expect(repeat([at(10, 50, 0), answer([], 50, { oldest: 5 })]).stored).toEqual([]);
    expect(repeat([at(10, 50, 0), answer([claim("end", 40, 90)], 50)]).stored).toMatchObject([
      { kind: "end" },
    ]);
    const stillAbsent = { ...claim("still absent", 50, 90), because: NOT_FOUND };
    expect(repeat([at(10, 50, 0), answer([stillAbsent], 50)]).stored).toHaveLength(1);
  });
});
