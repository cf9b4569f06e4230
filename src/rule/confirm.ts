import { MICROS_PER_DAY, type Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type Claim, type ClaimKind, NOT_FOUND, type PendingClaim } from "./claim.ts";

/** How often, and over which time, the service must repeat a claim; one that contradicts no rows of REST at most twice. */
export interface ConfirmationRules {
  readonly answers: number;
  readonly over: Micros;
}

type Needed = "at once" | "twice" | "incident";

/** One row for each kind: records count at once, and so do few that are gone; that there are none must be repeated. */
const needed: Readonly<Record<ClaimKind, Needed>> = {
  records: "at once",
  gone: "at once",
  end: "twice",
  "not found": "twice",
  withdrawn: "incident",
  "end moved": "incident",
  "still absent": "at once",
};

/** Whether the claim contradicts rows that REST served. */
export const isIncident = (kind: ClaimKind) => needed[kind] === "incident";

function rulesFor(kind: ClaimKind, { answers, over }: ConfirmationRules): ConfirmationRules {
  return { answers: needed[kind] === "twice" ? Math.min(2, answers) : answers, over };
}

/** When a pending claim is asked about again. */
export function nextAskAt(
  { kind, lastAt }: Pick<PendingClaim, "kind" | "lastAt">,
  rules: ConfirmationRules,
): Micros {
  const { answers, over } = rulesFor(kind, rules);
  return lastAt + over / Math.max(1, answers - 1);
}

/** What an answer shows beside its claims: it disproves the pending claims that it does not repeat. */
export interface Evidence {
  readonly claims: readonly Claim[];
  /** The range for which the answer is authoritative. */
  readonly shown: TimeRange | undefined;
  /** The oldest record of the answer. */
  readonly oldest: Micros | undefined;
  /** Records below this may be gone without a word. */
  readonly windowStart: Micros;
  readonly now: Micros;
}

export interface Confirmed {
  readonly accepted: readonly Claim[];
  /** The claims to store: pending ones with one more answer, and those that were accepted just now. */
  readonly recorded: readonly PendingClaim[];
  /** Stored claims that are no longer true, or that `recorded` has anew. */
  readonly dropped: readonly PendingClaim[];
}

/** The one rule: a claim that records do not exist must be repeated before it is accepted (docs/decisions/absence.md). */
export function confirm(
  evidence: Evidence,
  pending: readonly PendingClaim[],
  rules: ConfirmationRules,
): Confirmed {
  const accepted: Claim[] = [];
  const recorded: PendingClaim[] = [];
  const dropped = new Set(pending.filter((claim) => isDisproved(claim, evidence)));
  for (const claim of evidence.claims) {
    if (needed[claim.kind] === "at once") {
      accepted.push(claim);
      continue;
    }
    const before = pending.find((each) => each.kind === claim.kind && isAbout(each, claim));
    const repeated = before && repeats(claim, before, evidence);
    if (repeated === "in part") continue;
    const entry = countAnswer(
      claim,
      repeated ? before : undefined,
      rulesFor(claim.kind, rules),
      evidence.now,
    );
    if (before) dropped.add(before);
    // An end that nobody doubts is in the ledger; what contradicts stored rows is told for a while.
    if (entry.acceptedAt === null || isIncident(claim.kind)) recorded.push(entry);
    if (entry.acceptedAt !== null) accepted.push({ ...claim, range: entry.range, subject: entry.subject });
  }
  for (const claim of pending) if (accepted.some((each) => hasOvertaken(each, claim))) dropped.add(claim);
  return { accepted, recorded, dropped: [...dropped] };
}

/** Whether the service can no longer repeat that rows are withdrawn: it serves nothing of their time any more. */
function hasOvertaken(
  { kind, range }: Claim,
  { kind: before, acceptedAt, range: hole }: PendingClaim,
): boolean {
  if (before !== "withdrawn" || acceptedAt !== null || !absences.includes(kind)) return false;
  return range.from <= hole.from && hole.to <= range.to;
}

/** An end may move up this much faster than time: services delete in batches. */
const MAX_BATCH_MICROS = MICROS_PER_DAY;

const ends: readonly ClaimKind[] = ["end", "end moved"];
const absences: readonly ClaimKind[] = [...ends, "not found", "still absent"];

/** A series has one end, and exists or not; it may have several holes. */
function isAbout(before: PendingClaim, { kind, range }: Claim): boolean {
  return kind !== "withdrawn" || (before.acceptedAt === null && overlaps(before.range, range));
}

/** Whether the claim repeats the one before; `in part`: as far as the answer shows it. */
function repeats(claim: Claim, before: PendingClaim, evidence: Evidence): boolean | "in part" {
  const { windowStart, now, shown } = evidence;
  if (claim.kind === "withdrawn") {
    const served = before.subject.filter((ts) => ts >= windowStart);
    const visible = served.filter((ts) => shown !== undefined && shown.from <= ts && ts < shown.to);
    const isSame = areEqual(
      visible,
      claim.subject.filter((ts) => ts >= windowStart),
    );
    return isSame && visible.length < served.length ? "in part" : isSame;
  }
  if (claim.kind === "end moved")
    return claim.range.to - before.range.to <= now - before.lastAt + MAX_BATCH_MICROS;
  if (claim.kind !== "end") return true;
  if (isBelow(claim, before)) return "in part";
  return areEqual(before.subject, claim.subject);
}

/** A walk below the end has no record: it agrees, but says nothing about the range above it. */
function isBelow({ subject, range }: Claim, end: PendingClaim): boolean {
  return subject.length === 0 && range.to < end.range.to;
}

function countAnswer(
  { kind, range, subject }: Claim,
  before: PendingClaim | undefined,
  { answers: minAnswers, over }: ConfirmationRules,
  now: Micros,
): PendingClaim {
  const answers = (before?.answers ?? 0) + 1;
  const firstAt = before?.firstAt ?? now;
  const earlier = before?.range ?? range;
  // Answers about an index are about all of its time, and those about a moved end differ by the gap that was asked about. Of a
  // history without a record, only the part that was asked about twice counts.
  const isWide = kind !== "end" && kind !== "withdrawn";
  const from = isWide ? Math.min(range.from, earlier.from) : range.from;
  const to = isWide
    ? Math.max(range.to, earlier.to)
    : kind === "end"
      ? Math.min(range.to, earlier.to)
      : range.to;
  const wasAccepted = before !== undefined && before.acceptedAt !== null;
  const isAccepted = wasAccepted || minAnswers === 1 || (answers >= minAnswers && now - firstAt >= over);
  return {
    kind,
    range: { from, to },
    // A walk below a moved end has no record: the end stays where an answer has shown it.
    subject: before && range.to < to ? before.subject : subject,
    answers,
    firstAt,
    lastAt: now,
    acceptedAt: isAccepted ? now : null,
  };
}

/** Whether the answer has records where the claim says that there are none. */
function isDisproved(claim: PendingClaim, { claims, shown, oldest }: Evidence): boolean {
  const { kind, range, subject, acceptedAt } = claim;
  if (kind === "withdrawn") {
    const isShown = (ts: Micros) => shown !== undefined && shown.from <= ts && ts < shown.to;
    const isRepeated = claims.some((each) => each.kind === kind && overlaps(each.range, range));
    return acceptedAt === null && subject.some(isShown) && !isRepeated;
  }
  // A page of an index shows that it exists.
  if (kind === "not found") return claims.every(({ because }) => because !== NOT_FOUND);
  const isOther = (each: Claim) => each.kind !== kind && ends.includes(each.kind) && !isBelow(each, claim);
  if (claims.some(isOther)) return true;
  return oldest !== undefined && oldest < (subject[0] ?? range.to);
}

function overlaps(a: TimeRange, b: TimeRange): boolean {
  return a.from < b.to && b.from < a.to;
}

function areEqual(a: readonly Micros[], b: readonly Micros[]): boolean {
  return a.length === b.length && a.every((ts, i) => ts === b[i]);
}
