import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import type { ClaimKind } from "./claim.ts";

/** How many equal answers count, and the time from the first of them to the last. */
export interface Repetition {
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
  /** Absent: `sync.withdrawals.answers`. */
  readonly answers?: number;
  /** Absent: `sync.withdrawals.over`. */
  readonly over?: Micros;
  /** What equal answers are about. */
  readonly scope: string;
  /** Where the answers are counted; if not in the warehouse, why a restart may forget them. */
  readonly remembered: string;
}

const STORED = "`pending_claims`";
const HOUR = 3600 * MICROS_PER_SECOND;
const SECOND = MICROS_PER_SECOND;

/** All that the service must say again before it counts. `docs/promise.md` prints it. */
const rows = {
  records: { answers: 1, over: 0, scope: "a range of a series", remembered: "at once" },
  gone: { answers: 1, over: 0, scope: "few rows of a page", remembered: "at once" },
  "still absent": { answers: 1, over: 0, scope: "a series", remembered: "the ledger has the claim before" },
  end: { answers: 2, scope: "a series", remembered: STORED },
  "not found": { answers: 2, scope: "a series", remembered: STORED },
  "end moved": { scope: "a series", remembered: STORED },
  withdrawn: { scope: "the rows of a range", remembered: STORED },
  delisted: { answers: 3, over: 2 * HOUR, scope: "an entry of a list", remembered: STORED },
  "shorter list": {
    answers: 3,
    over: 2 * MICROS_PER_DAY,
    scope: "an entry of a list that lacks more than a tenth",
    remembered: STORED,
  },
  "shorter snapshot": {
    answers: 2,
    over: 20 * SECOND,
    scope: "a list of a snapshot",
    remembered: STORED,
  },
} as const satisfies Record<ClaimKind, RepetitionRow> & Record<string, RepetitionRow>;

/** What the service says, and must say again. */
export type Repeated = keyof typeof rows;
/** What is counted for each entry of a list. */
export type ListClaimKind = "delisted" | "shorter snapshot";

export const repetitions: Readonly<Record<Repeated, RepetitionRow>> = rows;

/** `settings`: of `sync.withdrawals`; fewer answers there are enough for everything that reads them. */
export function requiredFor(
  what: Repeated,
  settings: Repetition = { answers: Number.POSITIVE_INFINITY, over: 0 },
): Repetition {
  const { answers = settings.answers, over = settings.over } = repetitions[what];
  return { answers: Math.min(answers, settings.answers), over };
}

/** One more equal answer. */
export function countAnswer(before: Tally | undefined, now: Micros): Tally {
  return { answers: (before?.answers ?? 0) + 1, firstAt: before?.firstAt ?? now, lastAt: now };
}

/** Whether the service has said it often enough, over enough time. */
export function isEnough({ answers, firstAt, lastAt }: Tally, required: Repetition): boolean {
  return required.answers === 1 || (answers >= required.answers && lastAt - firstAt >= required.over);
}

/** The time between two answers, if they are spread evenly. */
export function pauseOf({ answers, over }: Repetition): Micros {
  return over / Math.max(1, answers - 1);
}

/** Entries of a list that the same answers lacked. */
export interface AbsentEntries extends Tally {
  readonly subject: readonly string[];
}

/** What is still pending after an answer that lacks only these entries. */
export function onlyAbsent(
  pending: readonly AbsentEntries[],
  isAbsent: (entry: string) => boolean,
): AbsentEntries[] {
  return pending
    .map((each) => ({ ...each, subject: each.subject.filter(isAbsent) }))
    .filter(({ subject }) => subject.length > 0);
}

interface CountedAbsences {
  /** Absent often enough, the longest first. */
  readonly accepted: readonly string[];
  /** What is pending now. */
  readonly pending: readonly AbsentEntries[];
}

/** Counts an answer that lacks these entries, and has the others. `max`: no more are accepted at once. */
export function countAbsences(
  missing: readonly string[],
  before: readonly AbsentEntries[],
  required: Repetition,
  now: Micros,
  max = Number.POSITIVE_INFINITY,
): CountedAbsences {
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
