import { MICROS_PER_DAY as DAY, type Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  type Claim,
  type ClaimKind,
  NOT_FOUND,
  NOTHING_OLDER,
  type PendingClaim,
} from "../../../src/rule/answer.ts";
import { type ConfirmationRules, confirm, type Evidence, nextAskAt } from "../../../src/rule/confirm.ts";
import { type Agreement, specifyAnswer } from "./confirm-specification.ts";
import { combinations, inTurn, type PartCheck, type PartResult, tryAll } from "./part-check.ts";

const OVER = 100;
/** How long after the answer before: two of them are just under the time, exactly it, or longer. */
const pauses = [OVER / 2 - 1, OVER / 2, OVER];

type Answer = Omit<Evidence, "now">;

const range = (from: Micros, to: Micros): TimeRange => ({ from, to });
const claim = (kind: ClaimKind, at: TimeRange, subject: readonly Micros[] = []): Claim => ({
  kind,
  range: at,
  says: "empty",
  subject,
  because: kind === "not found" ? NOT_FOUND : NOTHING_OLDER,
});
const answer = (claims: readonly Claim[], more: Partial<Answer> = {}): Answer => ({
  claims,
  shown: undefined,
  oldest: undefined,
  windowStart: Number.MIN_SAFE_INTEGER,
  ...more,
});

/** A last page that ends at its oldest record, or has none. */
const ends = (kind: ClaimKind, at: TimeRange, subject: readonly Micros[] = []) =>
  answer([claim(kind, at, subject)], { oldest: subject[0] });

/** Pages and refusals about a history whose end is at one of three moments, or a day later. */
const endAnswers: readonly Answer[] = [
  ends("end", range(0, 3), [2]),
  ends("end", range(1, 3), [2]),
  ends("end", range(0, 2), [2]),
  ends("end", range(0, 2), [1]),
  ends("end", range(0, 2)),
  ends("end", range(0, 3)),
  ends("end", range(0, 4)),
  ends("end moved", range(0, 3), [2]),
  ends("end moved", range(1, 3), [2]),
  ends("end moved", range(0, 2), [1]),
  ends("end moved", range(0, 2)),
  ends("end moved", range(0, 3)),
  // A day and half the time later.
  ends("end moved", range(0, 3 + DAY + OVER / 2), [2 + DAY + OVER / 2]),
  answer([], { oldest: 1 }),
  answer([], { oldest: 2 }),
  answer([]),
  ends("not found", range(2, 4)),
  ends("not found", range(0, 2)),
  answer([{ ...claim("still absent", range(0, 3)), because: NOT_FOUND }]),
  answer([claim("still absent", range(0, 3))]),
];

const lacks = (subject: readonly Micros[], more: Partial<Answer> = {}) =>
  answer([claim("withdrawn", range(0, 3), subject)], { shown: range(0, 4), oldest: -1, ...more });
const other = claim("withdrawn", range(3, 5), [3]);

/** Pages that lack rows at three moments or some of them, show them, or serve nothing there. */
const holeAnswers: readonly Answer[] = [
  lacks([0, 1, 2]),
  lacks([0, 1, 2], { windowStart: 1 }),
  lacks([1, 2]),
  lacks([0, 2]),
  lacks([1, 2], { windowStart: 1 }),
  lacks([1, 2], { shown: range(1, 4) }),
  lacks([1, 2], { shown: range(1, 4), windowStart: 1 }),
  lacks([0, 1], { shown: range(0, 2) }),
  lacks([2], { shown: range(1, 4), windowStart: 2 }),
  lacks([2], { shown: range(2, 4), windowStart: 1 }),
  lacks([], { shown: undefined }),
  answer([other], { shown: range(3, 5) }),
  answer([other, claim("withdrawn", range(0, 3), [0, 1, 2])], { shown: range(0, 5) }),
  answer([claim("records", range(0, 5))], { shown: range(0, 5) }),
  answer([claim("gone", range(0, 5), [1])], { shown: range(2, 5) }),
  answer([], { shown: range(3, 5) }),
  answer([], { shown: range(-1, 0) }),
  answer([]),
  answer([claim("still absent", range(0, 3))]),
  answer([claim("still absent", range(0, 2))]),
  answer([claim("still absent", range(1, 5))]),
  ends("end", range(0, 5)),
  ends("end moved", range(0, 5)),
  ends("not found", range(0, 5)),
];

/** Tries every sequence of the answers: what is accepted and stored after each must be as the specification says. */
function trySequences(
  answers: readonly Answer[],
  rules: ConfirmationRules,
  maxLength: number,
  times: readonly Micros[],
): PartResult {
  let cases = 0;
  const given: Evidence[] = [];
  const extend = (pending: readonly PendingClaim[], agreements: readonly Agreement[]): string | undefined => {
    for (const pause of given.length === 0 ? times.slice(0, 1) : times)
      for (const each of answers) {
        const evidence = { ...each, now: (given.at(-1)?.now ?? 0) + pause };
        cases++;
        const confirmed = confirm(evidence, pending, rules);
        const stored = [
          ...pending.filter((before) => !confirmed.dropped.includes(before)),
          ...confirmed.recorded,
        ];
        const specified = specifyAnswer(agreements, evidence, rules);
        given.push(evidence);
        if (
          textOf(confirmed.accepted) !== textOf(specified.accepted) ||
          textOf(stored) !== textOf(specified.stored) ||
          !confirmed.dropped.every((each) => pending.includes(each))
        )
          return describe(given, rules, { accepted: confirmed.accepted, stored }, specified);
        // The warehouse keeps a withdrawal that was accepted for the report only.
        const isUsed = ({ kind, acceptedAt }: PendingClaim) => kind !== "withdrawn" || acceptedAt === null;
        const violation =
          given.length < maxLength ? extend(stored.filter(isUsed), specified.agreements) : undefined;
        if (violation !== undefined) return violation;
        given.pop();
      }
    return undefined;
  };
  return { violation: extend([], []), cases };
}

/** Whatever their order. */
function textOf(claims: readonly (Claim | PendingClaim)[]): string {
  let texts: string[] = [];
  for (const {
    kind,
    range: { from, to },
    subject,
    ...more
  } of claims) {
    const said = "says" in more ? `${more.says} ${more.because} ${more.lostTo}` : "";
    const counted =
      "answers" in more ? `${more.answers} ${more.firstAt} ${more.lastAt} ${more.acceptedAt}` : "";
    texts = [...texts, `${kind} ${from} ${to} [${subject}] ${said}${counted}`];
  }
  return texts.sort().join("\n");
}

interface Outcome {
  readonly accepted: readonly Claim[];
  readonly stored: readonly PendingClaim[];
}

function describe(
  given: readonly Evidence[],
  rules: ConfirmationRules,
  actual: Outcome,
  expected: Outcome,
): string {
  const show = ({ accepted, stored }: Outcome) => JSON.stringify({ accepted, stored });
  return `${JSON.stringify(rules)} after\n${given.map((each) => JSON.stringify(each)).join("\n")}\n  is ${show(actual)}\nwanted ${show(expected)}`;
}

function trySequencesOf(answers: readonly Answer[]): PartCheck["run"] {
  return (size) => {
    const isFull = size === "full";
    const runs = [
      { needed: 1, length: 2, times: pauses },
      { needed: 2, length: isFull ? 3 : 2, times: pauses },
      { needed: 3, length: size === "small" ? 2 : 3, times: pauses },
      // Every answer after half the time: the fourth one comes after two that may count.
      ...(isFull ? [{ needed: 3, length: 4, times: pauses.slice(1, 2) }] : []),
    ];
    return inTurn(runs, ({ needed, length, times }) =>
      trySequences(answers, { answers: needed, over: OVER }, length, times),
    );
  };
}

/** Asked in equal steps, the last answer that is needed comes when the time has passed. */
function tryTimes(): PartResult {
  const kinds = ["withdrawn", "end moved", "end", "not found"] as const;
  return tryAll(combinations({ kind: kinds, answers: [1, 2, 3, 5] }), ({ kind, answers }) => {
    const isTwice = kind === "end" || kind === "not found";
    const pausesNeeded = Math.max(1, (isTwice ? Math.min(2, answers) : answers) - 1);
    let lastAt = 7;
    for (let i = 0; i < pausesNeeded; i++) lastAt = nextAskAt({ kind, lastAt }, { answers, over: OVER });
    return [lastAt, 7 + OVER];
  });
}

export const confirmChecks: readonly PartCheck[] = [
  { name: "nextAskAt", run: tryTimes },
  { name: "confirm: ends", run: trySequencesOf(endAnswers) },
  { name: "confirm: holes", run: trySequencesOf(holeAnswers) },
];
