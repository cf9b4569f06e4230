import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import type { ClaimKind } from "./answer.ts";

/** How many equal answers count, and the time from the first of them to the last. */
export interface RequiredAnswers {
  readonly answers: number;
  readonly over: Micros;
}

/** Equal answers so far. */
export interface Tally {
  readonly answers: number;
  readonly firstAt: Micros;
  readonly lastAt: Micros;
}

interface RepetitionRow {
  /** How many equal answers, or which setting says it. */
  readonly answers: number | "sync.withdrawals.answers";
  /** From the first of them to the last, or which setting says it. */
  readonly over: Micros | "sync.withdrawals.over";
  /** What equal answers are about. */
  readonly scope: string;
  /** Where they are counted. Only the warehouse outlives a restart: whatever else counts may begin anew. */
  readonly remembered: string;
}

const row = (
  answers: RepetitionRow["answers"],
  over: RepetitionRow["over"],
  scope: string,
  remembered: string,
): RepetitionRow => ({ answers, over, scope, remembered });

const ANSWERS = "sync.withdrawals.answers";
const OVER = "sync.withdrawals.over";
const SECOND = MICROS_PER_SECOND;
const HOUR = 3600 * SECOND;

const NOT_NEEDED = "nowhere";
const STORED = "in `pending_claims`";
/** What a walk believes within moments becomes a claim about its series, which is counted over time. */
const BY_WALK = "by the walk";
const BY_REQUEST = "by the request";
const BY_RUN = "by the run";
/** After a restart it asks more than it must. */
const BY_PROCESS = "by the process";

/** All that the service must say again before it counts; docs/promise.md prints it. */
const rows = {
  records: row(1, 0, "a range of a series", NOT_NEEDED),
  gone: row(1, 0, "previews, or few rows of a page", NOT_NEEDED),
  "still absent": row(1, 0, "an end or a 404 that the ledger has, for the time since", NOT_NEEDED),
  end: row(2, OVER, "the oldest record of a series", STORED),
  "not found": row(2, OVER, "a series", STORED),
  "end moved": row(ANSWERS, OVER, "a series of which older rows were served", STORED),
  withdrawn: row(ANSWERS, OVER, "the rows of a range", STORED),
  delisted: row(3, 2 * HOUR, "an entry of a list", STORED),
  "shorter list": row(3, 2 * MICROS_PER_DAY, "an entry of a list that lacks more than a tenth", STORED),
  "shorter snapshot": row(2, 20 * SECOND, "a list that has lost more than half", STORED),
  "empty history": row(3, 0, "a series without a record", BY_WALK),
  silence: row(2, 0, "the time above a page, or between two pages", BY_WALK),
  "blank first page": row(3, 0, "a page without records that has a cursor", BY_WALK),
  "foreign records": row(3, 0, "equal pages with records of other series", BY_WALK),
  disorder: row(4, 0, "pages that are not newest first", BY_WALK),
  "null list": row(2, 0, "`null` or 204 in place of a list", BY_REQUEST),
  "no list": row(2, SECOND, "a response without a list", BY_REQUEST),
  "no list of a kind": row(20, 0, "all responses of an endpoint for a type", BY_PROCESS),
  denied: row(3, 4 * SECOND, "a 403, though the token has the scope", BY_REQUEST),
  "denied type": row(2, 0, "indices of a type of which none is served", BY_PROCESS),
  "refused index": row(2, 0, "a 400 for an index", BY_RUN),
  "other service": row(2, 0, "a list that shares too few entries with the stored one", BY_RUN),
} satisfies Record<ClaimKind, RepetitionRow> & Record<string, RepetitionRow>;

/** What the service says, and must say again. */
export type Repeated = keyof typeof rows;
/** What is counted for each entry of a list. */
export type ListClaimKind = "delisted" | "shorter snapshot";

export const repetitionTable: Readonly<Record<Repeated, RepetitionRow>> = rows;

/** `settings`: of `sync.withdrawals`; fewer answers there are enough for everything that reads them. */
export function requiredFor(
  what: Repeated,
  settings: RequiredAnswers = { answers: Number.POSITIVE_INFINITY, over: 0 },
): RequiredAnswers {
  const { answers, over } = repetitionTable[what];
  return {
    answers: Math.min(typeof answers === "number" ? answers : settings.answers, settings.answers),
    over: typeof over === "number" ? over : settings.over,
  };
}

export function countAnswer(before: Tally | undefined, now: Micros): Tally {
  return { answers: (before?.answers ?? 0) + 1, firstAt: before?.firstAt ?? now, lastAt: now };
}

/** Whether the service has said it often enough, over enough time. */
export function isEnough({ answers, firstAt, lastAt }: Tally, required: RequiredAnswers): boolean {
  return required.answers === 1 || (answers >= required.answers && lastAt - firstAt >= required.over);
}

/** The same for so many answers in a row, which need no time. */
export function isSaidEnough(what: Repeated, answers: number): boolean {
  return isEnough({ answers, firstAt: 0, lastAt: 0 }, requiredFor(what));
}

/** The time between two answers, if they are spread evenly. */
export function pauseOf({ answers, over }: RequiredAnswers): Micros {
  return over / Math.max(1, answers - 1);
}

/** Entries of a list that the same answers lacked. */
export interface AbsentEntries extends Tally {
  readonly subject: readonly string[];
}

/** What is still pending after an answer that lacks only these entries. */
export function onlyAbsent(pending: readonly AbsentEntries[], isAbsent: (entry: string) => boolean) {
  return pending
    .map((each) => ({ ...each, subject: each.subject.filter(isAbsent) }))
    .filter(({ subject }) => subject.length > 0);
}

/**
 * Counts an answer that lacks these entries, and has the others. `accepted`: absent often enough, the longest first, `max` at once.
 */
export function countAbsences(
  missing: readonly string[],
  before: readonly AbsentEntries[],
  required: RequiredAnswers,
  now: Micros,
  max = Number.POSITIVE_INFINITY,
): { readonly accepted: readonly string[]; readonly pending: readonly AbsentEntries[] } {
  const absent = new Set(missing);
  const repeated = onlyAbsent(before, (entry) => absent.has(entry));
  const known = new Set(repeated.flatMap(({ subject }) => subject));
  const first = { subject: missing.filter((entry) => !known.has(entry)) };
  const counted = [
    ...repeated.map((each) => ({ ...each, ...countAnswer(each, now) })),
    { ...first, ...countAnswer(undefined, now) },
  ];
  const enough = counted.filter((each) => isEnough(each, required));
  const accepted = new Set(enough.flatMap(({ subject }) => subject).slice(0, max));
  return { accepted: [...accepted], pending: onlyAbsent(counted, (entry) => !accepted.has(entry)) };
}
