import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { PageAnswer, SeriesRules, StoredRow, StoredSeries } from "./answer.ts";
import { type Claim, isHole, NO_RECORDS, NOT_FOUND, NOTHING_OLDER, type PendingClaim } from "./claim.ts";
import { finalUntil, findPrevious, provableUntil, type UpperBound } from "./provable-until.ts";

/** If a page lacks more stored rows than this share of its own size, the service must repeat it. */
const MAX_MISSING_SHARE = 0.1;
/** So many may always be missing: a tenth of a short page is less than one row. */
const MIN_MISSING_LIMIT = 2;

/** Why a page, and the rest of its walk, says nothing. */
export type PageContradiction =
  /** The filter was not applied: the page may lack records of the series. */
  | "foreign_rows"
  /**
   * Not newest first. A stray timestamp would prove a range that no page contains, and a page in ascending order may lack
   * the newest records instead of the oldest.
   */
  | "disordered"
  /** A record in the proven range that no earlier page had: the walk is out of order. */
  | "newer_than_proven";

export interface Interpretation {
  readonly claims: readonly Claim[];
  /** Covered ranges that the page takes back. */
  readonly retracted: readonly TimeRange[];
  /** What the page proves by its records alone; undefined: nothing. */
  readonly proven: TimeRange | undefined;
  /** The walk has proven its gap down to the start, or the page claims that nothing is older. */
  readonly isComplete: boolean;
  /** Set if stored rows are older than everything that the service still serves: its oldest record. */
  readonly endsAt: Micros | undefined;
  readonly bound: UpperBound;
}

/**
 * What a page without a contradiction says about its series. A page proves only the range above its oldest record
 * (docs/decisions/newest-first.md). One that reaches below the gap proves down to the gap's start; the last one claims that
 * nothing is older.
 */
export function interpret(
  page: PageAnswer,
  stored: StoredSeries,
  pending: readonly PendingClaim[],
  rules: SeriesRules,
): Interpretation {
  const previous = findPrevious(page);
  const oldest = page.timestamps.at(-1) ?? previous;
  const isEnd = page.isLast && !isCloseTo(page.gap.from, oldest, rules);
  const lower = page.isLast && !isEnd ? page.gap.from : Math.max(page.gap.from, lowestProven(page, oldest));
  const bound = provableUntil(page, isEnd && oldest === undefined ? page.gap.from : lower, stored, rules);
  const to = Math.min(page.provenFrom, bound.until);
  const proven = lower < to ? { from: lower, to } : undefined;
  const retracted = [...retractYoung(page, rules), ...(page.isStale ? [] : retractEnds(page, stored))];
  const end =
    isEnd && !page.isStale ? claimEnd(page, { oldest, to, retracted }, stored, pending, rules) : undefined;
  return {
    claims: [...(proven ? claimRecords(proven, page, stored, pending) : []), ...(end?.claims ?? [])],
    retracted,
    proven,
    isComplete: bound.isFinal && (isEnd || (lower === page.gap.from && lower < page.provenFrom)),
    endsAt: end?.endsAt,
    bound,
  };
}

/** Whether the page contradicts itself or its walk: then it says nothing. */
export function findContradiction({
  timestamps,
  foreign,
  gap,
  provenFrom,
  anchor = provenFrom - 1,
}: PageAnswer): PageContradiction | undefined {
  if (foreign > 0) return "foreign_rows";
  let before = Number.POSITIVE_INFINITY;
  for (const ts of timestamps) {
    if (ts > before) return "disordered";
    before = ts;
  }
  const newest = timestamps[0] ?? Number.NEGATIVE_INFINITY;
  return newest >= provenFrom && newest > anchor && newest < gap.to ? "newer_than_proven" : undefined;
}

/** Others with the timestamp of the oldest record may be on the next page, or on that of another server. */
function lowestProven({ timestamps, isLast }: PageAnswer, oldest: Micros | undefined): Micros {
  return ((isLast ? oldest : timestamps.at(-1)) ?? Number.POSITIVE_INFINITY) + 1;
}

/** Whether the oldest record is at the start of the gap, or none fits below it and what may be beside it leaves the window now. */
function isCloseTo(from: Micros, oldest: Micros | undefined, { period, windowStart }: SeriesRules): boolean {
  return oldest !== undefined && (oldest <= from || (oldest < windowStart && oldest - from < period));
}

/** The page is authoritative for what it proves: stored rows that it lacks are gone. If they are many, it must be repeated. */
export function claimRecords(
  proven: TimeRange,
  page: PageAnswer,
  stored: StoredSeries,
  pending: readonly PendingClaim[],
): Claim[] {
  const { isStale, timestamps } = page;
  const previous = findPrevious(page);
  const expected = previous === undefined ? timestamps : [previous].concat(timestamps);
  const holes = pending.filter(isHole);
  const missing = isStale ? [] : stored.rowsBeside(proven, expected);
  const [withdrawn, others] = claimWithdrawn(missing, expected, holes);
  const served = others.filter(({ isPreview }) => !isPreview);
  const limit = Math.max(MIN_MISSING_LIMIT, timestamps.length * MAX_MISSING_SHARE);
  if (served.length > limit) {
    const known = normalise(holes.map(({ range }) => range));
    for (const range of subtract([proven], known)) {
      const rows = served.filter(({ ts }) => includes(range, ts));
      if (rows.length > 0) withdrawn.push(claimHole(rows, hullOf(rows, proven, expected), expected));
    }
  }
  const gone = served.length > limit ? others.filter(({ isPreview }) => isPreview) : others;
  const isWhole = withdrawn.length === 0;
  const pieces = subtract([proven], normalise(withdrawn.map(({ range }) => range)));
  const records = pieces.flatMap((range): Claim[] => {
    const isInside = (ts: Micros) => includes(range, ts);
    const says = expected.some(isInside) ? ("rows" as const) : ("empty" as const);
    // A page that lacks many rows, or a stale one, does not prove that a range is empty: it counts between its own records.
    if ((isStale || !isWhole) && says === "empty") return [];
    const from = isWhole ? range.from : Math.min(...expected.filter(isInside));
    return [{ kind: "records", range: { from, to: range.to }, says, subject: [], because: NO_RECORDS }];
  });
  if (gone.length === 0) return [...withdrawn, ...records];
  return [
    { kind: "gone", range: proven, says: "rows", subject: gone.map(({ ts }) => ts), because: NO_RECORDS },
    ...withdrawn,
    ...records,
  ];
}

/** What the page says about rows that earlier answers lacked, and the other missing rows. */
function claimWithdrawn(
  missing: readonly StoredRow[],
  expected: readonly Micros[],
  holes: readonly PendingClaim[],
): [Claim[], StoredRow[]] {
  const claims: Claim[] = [];
  let others = [...missing];
  for (const { range } of holes) {
    const rows = others.filter(({ ts }) => includes(range, ts));
    others = others.filter(({ ts }) => !includes(range, ts));
    if (rows.length > 0) claims.push(claimHole(rows, range, expected));
  }
  return [claims, others];
}

function claimHole(rows: readonly StoredRow[], range: TimeRange, expected: readonly Micros[]): Claim {
  const says = expected.some((ts) => includes(range, ts)) ? "rows" : "empty";
  return { kind: "withdrawn", range, says, subject: rows.map(({ ts }) => ts), because: NO_RECORDS };
}

/** From the first of the rows to the next record of the page: where a walk of this range alone begins. */
function hullOf(rows: readonly StoredRow[], proven: TimeRange, expected: readonly Micros[]): TimeRange {
  const first = rows[0]?.ts ?? proven.from;
  const last = rows.at(-1)?.ts ?? proven.from;
  let { to } = proven;
  for (const ts of expected) if (ts > last && ts < to) to = ts;
  return { from: first, to };
}

interface EndOfPage {
  readonly oldest: Micros | undefined;
  readonly to: Micros;
  readonly retracted: readonly TimeRange[];
}

/** The last page claims that nothing is older. Says nothing where all of that is settled. */
function claimEnd(
  { gap }: PageAnswer,
  { oldest, to, retracted }: EndOfPage,
  stored: StoredSeries,
  pending: readonly PendingClaim[],
  { floor, windowStart, step }: SeriesRules,
): { claims: Claim[]; endsAt: Micros | undefined } {
  const servedFrom = oldest ?? gap.to;
  const range = {
    from: Math.min(gap.from, Math.max(floor, stored.targetStart ?? gap.from)),
    to: oldest === undefined ? to : Math.min(oldest + 1, to),
  };
  // Rows of a hole that the service had between its records are judged as withdrawn.
  const older = normalise([{ from: windowStart, to: servedFrom }]);
  const newestOlder = subtract(older, normalise(pending.filter(isHole).map((hole) => hole.range)))
    .map((part) => stored.newestServed(part))
    .findLast((ts) => ts !== undefined);
  const hasMoved = newestOlder !== undefined;
  const endsAt = hasMoved ? servedFrom : undefined;
  const settled = subtract(normalise(stored.settledRanges(range)), normalise(retracted));
  const open = range.from < range.to ? subtract([range], settled) : [];
  if (open.length === 0) return { claims: [], endsAt };
  // Without any record the series may have ended: what is above all its rows is empty, as for an index that was not found.
  const hasEnded =
    hasMoved &&
    oldest === undefined &&
    stored.newestServed({ from: gap.to, to: Number.MAX_SAFE_INTEGER }) === undefined;
  // Rows below an end that has not moved have just left the window.
  const hasOlder = hasMoved || stored.newestServed({ from: range.from, to: servedFrom }) !== undefined;
  const lostTo = hasEnded ? Math.min(servedFrom, newestOlder + step) : hasOlder ? servedFrom : undefined;
  const subject = oldest === undefined ? [] : [oldest];
  // The first record of a series that had none is news: where its history begins must be confirmed.
  const isKnown = oldest === undefined && isStill(NOTHING_OLDER, open, stored);
  const kind = hasMoved ? "end moved" : isKnown ? "still absent" : "end";
  return { claims: [{ kind, range, says: "empty", subject, because: NOTHING_OLDER, lostTo }], endsAt };
}

/** The service answered that the index does not exist. What is below its newest row it served before. */
export function claimNotFound(range: TimeRange, stored: StoredSeries, rules: SeriesRules): Claim {
  const newest = stored.newestRow(range.to);
  const from = Math.min(range.from, Math.max(rules.floor, stored.targetStart ?? range.from));
  const lostTo = newest === undefined ? undefined : newest + rules.step;
  const kind = isStill(NOT_FOUND, [range], stored) ? "still absent" : "not found";
  return { kind, range: { from, to: range.to }, says: "empty", subject: [], because: NOT_FOUND, lostTo };
}

/** Whether the ranges continue one that was settled for the same reason. */
function isStill(reason: string, open: readonly TimeRange[], stored: StoredSeries): boolean {
  return open.every((range) =>
    stored.settledRanges(range).some((settled) => settled.to === range.from && settled.reason === reason),
  );
}

/** Records have appeared later than the settle delay: what is younger than that is not covered any more. */
function retractYoung(page: PageAnswer, rules: SeriesRules): TimeRange[] {
  const { lateness, settleDelay, isDaily } = rules;
  if (!page.isHead || page.isStale || lateness <= settleDelay || isDaily) return [];
  const from = finalUntil({ madeAt: page.asOf, isStale: false }, lateness, rules);
  return [{ from, to: Number.MAX_SAFE_INTEGER }];
}

/** A record below an end of the history disproves it. */
function retractEnds({ timestamps }: PageAnswer, stored: StoredSeries): readonly TimeRange[] {
  const oldest = timestamps.at(-1);
  return oldest === undefined ? [] : stored.endsAbove(oldest);
}

function includes({ from, to }: TimeRange, ts: Micros): boolean {
  return from <= ts && ts < to;
}
