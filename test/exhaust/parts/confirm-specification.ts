import { MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { type Claim, type ClaimKind, NOT_FOUND, type PendingClaim } from "../../../src/rule/answer.ts";
import type { ConfirmationRules, Evidence } from "../../../src/rule/confirm.ts";

// The confirmation as docs/promise.md tells it: a claim about an absence counts when the last n answers about it agree, none
// contradicts them, and they span the time. Kept here are the answers themselves; `confirm` keeps counters.

/** The answers that agree, in their order. */
export interface Agreement {
  readonly kind: ClaimKind;
  readonly answers: readonly { readonly claim: Claim; readonly at: Micros }[];
}

export interface Specified {
  readonly accepted: readonly Claim[];
  /** What the warehouse stores afterwards. */
  readonly stored: readonly PendingClaim[];
  /** What the next answer may repeat or contradict. */
  readonly agreements: readonly Agreement[];
}

const confirmedKinds: readonly ClaimKind[] = ["withdrawn", "end moved", "end", "not found"];
/** What contradicts rows that REST served needs all answers, and is told afterwards. */
const incidents: readonly ClaimKind[] = ["withdrawn", "end moved"];
/** Nothing is served in the range. */
const absences: readonly ClaimKind[] = ["end", "end moved", "not found", "still absent"];

export function specifyAnswer(
  before: readonly Agreement[],
  answer: Evidence,
  { answers: needed, over }: ConfirmationRules,
): Specified {
  const accepted = answer.claims.filter(({ kind }) => !confirmedKinds.includes(kind));
  const standing = before.filter((agreement) => !isContradicted(agreement, answer));
  const continued = new Map<Agreement, Agreement | undefined>();
  const begun: Agreement[] = [];
  const acceptedNow = new Set<Agreement>();
  for (const claim of answer.claims.filter(({ kind }) => confirmedKinds.includes(kind))) {
    const earlier = standing.find((each) => isSameQuestion(each, claim));
    if (earlier && isAboutPart(claim, answer, earlier)) continue;
    const said = { claim, at: answer.now };
    const agreement: Agreement = {
      kind: claim.kind,
      answers: earlier && agrees(claim, answer, earlier) ? [...earlier.answers, said] : [said],
    };
    const n = incidents.includes(claim.kind) ? needed : Math.min(2, needed);
    const span = answer.now - (agreement.answers[0]?.at ?? Number.NaN);
    if (agreement.answers.length >= n && (span >= over || n === 1)) {
      acceptedNow.add(agreement);
      accepted.push({ ...claim, range: rangeOf(agreement), subject: subjectOf(agreement) });
    }
    if (earlier) continued.set(earlier, agreement);
    else begun.push(agreement);
  }
  // The service has nothing of the time of these rows any more: it cannot repeat that it lacks them.
  const isOvertaken = (each: Agreement) =>
    each.kind === "withdrawn" &&
    accepted.some(({ kind, range }) => absences.includes(kind) && contains(range, rangeOf(each)));
  const all = [
    ...standing.filter((each) => !continued.has(each) && !isOvertaken(each)),
    ...[...continued.values()].filter((each) => each !== undefined),
    ...begun,
  ];
  const isStored = (each: Agreement) => !acceptedNow.has(each) || incidents.includes(each.kind);
  // An end that has moved goes on to move; a withdrawal that was accepted is over.
  const isOver = (each: Agreement) => acceptedNow.has(each) && each.kind !== "end moved";
  return {
    accepted,
    stored: all.filter(isStored).map((each) => toStored(each, needed, over)),
    agreements: all.filter((each) => !isOver(each)),
  };
}

function toStored(agreement: Agreement, needed: number, over: Micros): PendingClaim {
  const times = agreement.answers.map(({ at }) => at);
  const [firstAt, lastAt] = [Math.min(...times), Math.max(...times)];
  const isAccepted = incidents.includes(agreement.kind) && times.length >= needed && lastAt - firstAt >= over;
  const isAtOnce = incidents.includes(agreement.kind) && needed === 1;
  return {
    kind: agreement.kind,
    range: rangeOf(agreement),
    subject: subjectOf(agreement),
    answers: times.length,
    firstAt,
    lastAt,
    acceptedAt: isAccepted || isAtOnce ? lastAt : null,
  };
}

const lastOf = ({ answers }: Agreement) => answers.at(-1)?.claim as Claim;
const contains = (outer: TimeRange, inner: TimeRange) => outer.from <= inner.from && inner.to <= outer.to;
const isWithin = (range: TimeRange | undefined, ts: Micros) =>
  range !== undefined && ts >= range.from && ts < range.to;
const meet = (a: TimeRange, b: TimeRange) => Math.max(a.from, b.from) < Math.min(a.to, b.to);

/** What all answers say together. */
function rangeOf(agreement: Agreement): TimeRange {
  const ranges = agreement.answers.map(({ claim }) => claim.range);
  const { range: last } = lastOf(agreement);
  const [froms, tos] = [ranges.map(({ from }) => from), ranges.map(({ to }) => to)];
  // Nothing below the lowest of them, however far down each was asked about; a history without a record is empty until the last.
  if (agreement.kind === "end")
    return { from: last.from, to: lastOf(agreement).subject.length === 0 ? last.to : Math.min(...tos) };
  return { from: Math.min(...froms), to: Math.max(...tos) };
}

/** Of an end that moved, the oldest record is that of the last answer that reached up to it. */
function subjectOf(agreement: Agreement): readonly Micros[] {
  const { to } = rangeOf(agreement);
  const highest = agreement.answers.findLast(({ claim }) => claim.range.to === to)?.claim;
  return agreement.kind === "end moved" ? (highest?.subject ?? []) : lastOf(agreement).subject;
}

/** A series has one end, and exists or not. It may lack rows in several places. */
function isSameQuestion(agreement: Agreement, { kind, range }: Claim): boolean {
  return agreement.kind === kind && (kind !== "withdrawn" || meet(lastOf(agreement).range, range));
}

function isContradicted(agreement: Agreement, { claims, shown, oldest }: Evidence): boolean {
  switch (agreement.kind) {
    case "not found":
      return !claims.some(({ because }) => because === NOT_FOUND);
    case "withdrawn": {
      const { range, subject } = lastOf(agreement);
      const isLackedAgain = claims.some((claim) => claim.kind === "withdrawn" && meet(claim.range, range));
      return !isLackedAgain && subject.some((ts) => isWithin(shown, ts));
    }
    default: {
      const endsAt = subjectOf(agreement)[0] ?? rangeOf(agreement).to;
      if (oldest !== undefined && oldest < endsAt) return true;
      const other = claims.find(({ kind }) => kind === (agreement.kind === "end" ? "end moved" : "end"));
      return other !== undefined && !isEmptyBelow(other, agreement);
    }
  }
}

/** A walk below the end finds nothing: it says nothing about where the end is. */
function isEmptyBelow({ range, subject }: Claim, end: Agreement): boolean {
  return subject.length === 0 && range.to < rangeOf(end).to;
}

/** Whether the answer agrees as far as it goes, and does not go far enough to count. */
function isAboutPart(claim: Claim, answer: Evidence, earlier: Agreement): boolean {
  if (claim.kind === "end") return isEmptyBelow(claim, earlier);
  if (claim.kind !== "withdrawn") return false;
  return agrees(claim, answer, earlier) && !inWindow(lastOf(earlier), answer).every(isIn(answer));
}

const inWindow = ({ subject }: Claim, { windowStart }: Evidence) =>
  subject.filter((ts) => !(ts < windowStart));
const isIn =
  ({ shown }: Evidence) =>
  (ts: Micros) =>
    isWithin(shown, ts);

function agrees(claim: Claim, answer: Evidence, earlier: Agreement): boolean {
  const last = lastOf(earlier);
  switch (claim.kind) {
    case "end":
      return `${claim.subject}` === `${last.subject}`;
    case "withdrawn":
      return `${inWindow(claim, answer)}` === `${inWindow(last, answer).filter(isIn(answer))}`;
    case "end moved": {
      // With time, and a day at once: services delete in batches.
      const passed = answer.now - (earlier.answers.at(-1)?.at ?? Number.NaN);
      return claim.range.to <= rangeOf(earlier).to + passed + MICROS_PER_DAY;
    }
    default:
      return true;
  }
}
