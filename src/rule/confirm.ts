import { MICROS_PER_DAY, type Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type Claim, type ClaimKind, NOT_FOUND, type PendingClaim } from "./answer.ts";
import { countAnswer, isEnough, pauseOf, type RequiredAnswers, requiredFor } from "./repetition.ts";

/** The settings `sync.withdrawals`. */
export type ConfirmationRules = RequiredAnswers;

/** Whether the claim contradicts rows that REST served. */
export const isIncident = (kind: ClaimKind) => kind === "withdrawn" || kind === "end moved";

/** When a pending claim is asked about again. */
export function nextAskAt({ kind, lastAt }: Pick<PendingClaim, "kind" | "lastAt">, rules: ConfirmationRules) {
  return lastAt + pauseOf(requiredFor(kind, rules));
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

/**
 * The one rule: a claim that records do not exist must be repeated before it is accepted (docs/decisions/absence.md). `pending` also
 * has an end that moved and was accepted: it goes on to move.
 */
export function confirm(
  evidence: Evidence,
  pending: readonly PendingClaim[],
  rules: ConfirmationRules,
): Confirmed {
  const accepted: Claim[] = [];
  const recorded: PendingClaim[] = [];
  const dropped = new Set(pending.filter((claim) => isDisproved(claim, evidence)));
  const standing = pending.filter((claim) => !dropped.has(claim));
  for (const claim of evidence.claims) {
    const before = standing.find((each) => isAbout(each, claim));
    if (before && isPartOf(claim, before, evidence)) continue;
    if (before) dropped.add(before);
    const repeated = before && repeats(claim, before, evidence) ? before : undefined;
    const entry = countClaim(claim, repeated, requiredFor(claim.kind, rules), evidence.now);
    // An end that nobody doubts is in the ledger; what contradicts stored rows is reported for a while.
    if (entry.acceptedAt === null || isIncident(claim.kind)) recorded.push(entry);
    if (entry.acceptedAt !== null) accepted.push({ ...claim, range: entry.range, subject: entry.subject });
  }
  for (const claim of standing) if (accepted.some((each) => hasOvertaken(each, claim))) dropped.add(claim);
  return { accepted, recorded, dropped: [...dropped] };
}

const ends: readonly ClaimKind[] = ["end", "end moved"];
const absences: readonly ClaimKind[] = [...ends, "not found", "still absent"];

/** Whether the answer has records where the claim says that there are none. */
function isDisproved(claim: PendingClaim, { claims, shown, oldest }: Evidence): boolean {
  const { kind, range, subject } = claim;
  if (kind === "withdrawn")
    return subject.some((ts) => isShown(ts, shown)) && !claims.some((each) => isAbout(claim, each));
  // A page of an index shows that it exists.
  if (kind === "not found") return claims.every(({ because }) => because !== NOT_FOUND);
  const isOther = (each: Claim) => each.kind !== kind && ends.includes(each.kind) && !isBelow(each, claim);
  return claims.some(isOther) || (oldest ?? Number.POSITIVE_INFINITY) < (subject[0] ?? range.to);
}

/** A series has one end, and exists or not; it may have several holes. */
function isAbout(before: PendingClaim, { kind, range }: Claim): boolean {
  if (before.kind !== kind) return false;
  return kind !== "withdrawn" || (before.range.from < range.to && range.from < before.range.to);
}

/** Whether the claim agrees as far as it goes, but does not go as far as the one before: it does not count. */
function isPartOf(claim: Claim, before: PendingClaim, evidence: Evidence): boolean {
  if (claim.kind === "end") return isBelow(claim, before);
  const isSeen = (ts: Micros) => ts < evidence.windowStart || isShown(ts, evidence.shown);
  return claim.kind === "withdrawn" && !before.subject.every(isSeen) && repeats(claim, before, evidence);
}

/** A walk below the end has no record: it says nothing about the range above it. */
function isBelow({ subject, range }: Claim, end: PendingClaim): boolean {
  return subject.length === 0 && range.to < end.range.to;
}

/** An end may move up this much faster than time: services delete in batches. */
const MAX_BATCH_MICROS = MICROS_PER_DAY;

function repeats(
  { kind, range, subject }: Claim,
  before: PendingClaim,
  { windowStart, now, shown }: Evidence,
): boolean {
  if (kind === "end") return areEqual(before.subject, subject);
  if (kind === "end moved") return range.to - before.range.to <= now - before.lastAt + MAX_BATCH_MICROS;
  const isServed = (ts: Micros) => ts >= windowStart;
  return areEqual(
    before.subject.filter((ts) => isServed(ts) && isShown(ts, shown)),
    subject.filter(isServed),
  );
}

function countClaim(
  { kind, range, subject }: Claim,
  before: PendingClaim | undefined,
  required: RequiredAnswers,
  now: Micros,
): PendingClaim {
  const tally = countAnswer(before, now);
  const merged = before ? mergeRanges(kind, before, { range, subject }) : range;
  return {
    kind,
    range: merged,
    // A walk below a moved end has no record: the end stays where an answer has shown it.
    subject: before && range.to < merged.to ? before.subject : subject,
    ...tally,
    acceptedAt: isEnough(tally, required) ? now : null,
  };
}

/** The range of a claim and of the one that it repeats. */
function mergeRanges(
  kind: ClaimKind,
  { range: before }: PendingClaim,
  { range: { from, to }, subject }: Pick<Claim, "range" | "subject">,
): TimeRange {
  // Only what both are about; of a history without a record, what was accepted before holds for the time since.
  if (kind === "end") return { from, to: subject.length === 0 ? to : Math.min(before.to, to) };
  // Answers about an index are about all of its time, and those about a moved end differ by the gap that was asked about.
  return { from: Math.min(before.from, from), to: Math.max(before.to, to) };
}

/** Whether the service can no longer repeat that rows are withdrawn: it serves nothing of their time any more. */
function hasOvertaken({ kind, range }: Claim, { kind: before, range: hole }: PendingClaim): boolean {
  return before === "withdrawn" && absences.includes(kind) && range.from <= hole.from && hole.to <= range.to;
}

function isShown(ts: Micros, shown: TimeRange | undefined): boolean {
  return shown !== undefined && shown.from <= ts && ts < shown.to;
}

function areEqual(a: readonly Micros[], b: readonly Micros[]): boolean {
  return a.length === b.length && a.every((ts, i) => ts === b[i]);
}
