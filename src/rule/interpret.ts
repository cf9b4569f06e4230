import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import {
  type Claim,
  holesOf,
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
  type PageAnswer,
  type PendingClaim,
  type SeriesRules,
  type StoredRow,
  type StoredSeries,
} from "./answer.ts";
import { disprovedRanges } from "./apply.ts";
import { finalUntil, findPrevious, provableUntil, type UpperBound, withinPresent } from "./provable-until.ts";

/** If a page lacks more stored rows than this fraction of its own size, the service must repeat it. */
const MAX_MISSING_FRACTION = 0.1;
/** So many may always be missing: a tenth of a short page is less than one row. */
const MIN_MISSING_LIMIT = 2;

/** Why a page, and the rest of its walk, says nothing. */
type PageContradiction =
  /** The filter was not applied: the page may lack records of the series. */
  | "foreign_rows"
  /**
   * Not newest first. A stray timestamp would prove a range that no page contains, and a page in ascending order may lack
   * the newest records instead of the oldest.
   */
  | "disordered"
  /** A record in the proven range that no earlier page had: the walk is out of order. */
  | "newer_than_proven";

/** Why a page settles nothing. */
export type PageAlarm =
  | PageContradiction
  /** So many records are unreadable that the format has probably changed. */
  | "mass_rejection"
  /** A stale page, and a stored row that may be newer contradicts it. */
  | "older_than_stored";

export interface Interpretation {
  readonly claims: readonly Claim[];
  /** What may still get late records, or is out of order: not covered any more. */
  readonly young: readonly TimeRange[];
  /** Ends of the history above a record of the page, and empty ranges that have one: open again. */
  readonly reopened: readonly TimeRange[];
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
  const { gap, isLast, isStale, timestamps } = page;
  const oldest = timestamps.at(-1) ?? findPrevious(page);
  const lowest = timestamps.at(-1) ?? Number.POSITIVE_INFINITY;
  const isEnd = isLast && !reachesStart(gap.from, oldest ?? Number.POSITIVE_INFINITY, rules);
  // Others with the timestamp of the oldest record may be on the next page, or on that of another server.
  const lower = isLast && !isEnd ? gap.from : Math.max(gap.from, lowest + 1);
  const bound = provableUntil(page, isEnd ? gap.from : lower, stored, rules);
  const provableTo = Math.min(page.provenFrom, bound.until);
  const proven = lower < provableTo ? { from: lower, to: provableTo } : undefined;
  const ends = isStale ? [] : stored.endsAbove(lowest);
  const isOther = ({ from }: TimeRange) => !ends.some((each) => each.from === from);
  const reopened = [...ends, ...findDisproved(page, stored).filter(isOther)];
  const end =
    isEnd && !isStale
      ? claimEnd(page, { oldest, provableTo, reopened }, stored, pending, rules)
      : { claims: [], endsAt: undefined };
  return {
    claims: [...(proven ? claimRecords(proven, page, stored, pending) : []), ...end.claims],
    young: findYoung(page, rules),
    reopened,
    proven,
    isComplete: bound.isFinal && (isEnd || lower === gap.from),
    endsAt: end.endsAt,
    bound,
  };
}

export const saysNothing: Interpretation = {
  claims: [],
  young: [],
  reopened: [],
  proven: undefined,
  isComplete: false,
  endsAt: undefined,
  bound: { until: 0, isFinal: false, isUnpublished: false, publication: undefined, showsRunningDay: false },
};

/** A page with a contradiction says nothing, but its rows are stored. */
export function ignoreClaims(page: PageAnswer, stored: StoredSeries, alarm: PageAlarm): Interpretation {
  const young = alarm === "newer_than_proven" ? [{ from: page.provenFrom, to: page.gap.to }] : [];
  return { ...saysNothing, young, reopened: findDisproved(page, stored) };
}

/** The ranges settled as empty in which the page has a row: one seek per page. */
function findDisproved({ timestamps, rows = timestamps }: PageAnswer, stored: StoredSeries) {
  const from = rows.reduce((oldest, ts) => Math.min(oldest, ts), Number.POSITIVE_INFINITY);
  const to = rows.reduce((newest, ts) => Math.max(newest, ts), Number.NEGATIVE_INFINITY);
  return disprovedRanges(stored.settledRanges({ from, to }), rows);
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
  if (timestamps.some((ts, i) => i > 0 && ts > (timestamps[i - 1] as Micros))) return "disordered";
  const isNewer = timestamps.some((ts) => ts >= provenFrom && ts > anchor && ts < gap.to);
  return isNewer ? "newer_than_proven" : undefined;
}

/** Whether the oldest record is at the start of the gap, or none fits below it and what may be beside it leaves the window now. */
function reachesStart(from: Micros, oldest: Micros, { period, windowStart }: SeriesRules): boolean {
  return oldest <= from || (oldest < windowStart && oldest - from < period);
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
  const missing = isStale ? [] : stored.rowsBeside(proven, expected);
  if (missing.length === 0) {
    const isEmpty = !expected.some((ts) => includes(proven, ts));
    // A stale page does not prove that a range is empty.
    if (isEmpty && isStale) return [];
    return [
      { kind: "records", range: proven, says: isEmpty ? "empty" : "rows", subject: [], because: NO_RECORDS },
    ];
  }
  const holes = holesOf(pending);
  const others = missing.filter(({ ts }) => !holes.some((hole) => includes(hole, ts)));
  const served = others.filter(({ isPreview }) => !isPreview);
  const isMany = served.length > Math.max(MIN_MISSING_LIMIT, timestamps.length * MAX_MISSING_FRACTION);
  const gone = new Set(others.filter(({ isPreview }) => isPreview || !isMany));
  const many = others.filter((row) => !gone.has(row));
  const newHoles = findHoles(many, subtract([proven], normalise(holes)), expected);
  const withdrawn = [...holes, ...newHoles].flatMap((hole): Claim[] => {
    const rows = missing.filter((row) => includes(hole, row.ts) && !gone.has(row));
    const says = expected.some((ts) => includes(hole, ts)) ? "rows" : "empty";
    return rows.length > 0
      ? [{ kind: "withdrawn", range: hole, says, subject: rows.map(({ ts }) => ts), because: NO_RECORDS }]
      : [];
  });
  const pieces = subtract([proven], normalise(withdrawn.map(({ range }) => range)));
  const records = pieces.flatMap(({ from, to }): Claim[] => {
    const oldest = expected.findLast((ts) => includes({ from, to }, ts));
    const isWhole = withdrawn.length === 0;
    // A page that lacks many rows does not prove that a range is empty: it counts between its own records.
    if (oldest === undefined && !isWhole) return [];
    const range = { from: isWhole ? from : (oldest ?? from), to };
    const says = oldest === undefined ? "empty" : "rows";
    return [{ kind: "records", range, says, subject: [], because: NO_RECORDS }];
  });
  if (gone.size === 0) return [...withdrawn, ...records];
  const subject = [...gone].map(({ ts }) => ts);
  return [
    { kind: "gone", range: proven, says: "rows", subject, because: NO_RECORDS },
    ...withdrawn,
    ...records,
  ];
}

/** In each part, from the first of the rows to the next record of the page: where a walk of this range alone begins. */
function findHoles(rows: readonly StoredRow[], parts: readonly TimeRange[], expected: readonly Micros[]) {
  return parts.map((part) => {
    const inside = rows.map(({ ts }) => ts).filter((ts) => includes(part, ts));
    const last = inside.at(-1) ?? part.to;
    const next = expected.findLast((ts) => includes({ from: last, to: part.to }, ts));
    return { from: inside[0] ?? part.to, to: next ?? part.to };
  });
}

interface EndOfPage {
  readonly oldest: Micros | undefined;
  readonly provableTo: Micros;
  readonly reopened: readonly TimeRange[];
}

/** The last page claims that nothing is older. Says nothing where all of that is settled. */
function claimEnd(
  { gap }: PageAnswer,
  { oldest, provableTo, reopened }: EndOfPage,
  stored: StoredSeries,
  pending: readonly PendingClaim[],
  { floor, windowStart, step }: SeriesRules,
): { claims: Claim[]; endsAt: Micros | undefined } {
  const servedFrom = oldest ?? gap.to;
  const range = {
    from: Math.min(gap.from, Math.max(floor, stored.targetStart ?? gap.from)),
    to: oldest === undefined ? provableTo : Math.min(oldest + 1, provableTo),
  };
  // Rows of a hole that the service had between its records are judged as withdrawn.
  const older = normalise([{ from: windowStart, to: servedFrom }]);
  const newestOlder = subtract(older, normalise(holesOf(pending)))
    .map((part) => stored.newestServed(part))
    .findLast((ts) => ts !== undefined);
  const hasMoved = newestOlder !== undefined;
  const endsAt = hasMoved ? servedFrom : undefined;
  const settled = subtract(normalise(stored.settledRanges(range)), normalise(reopened));
  const open = subtract([range], settled);
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
  const to = withinPresent(range.to, stored, rules);
  return {
    kind,
    range: { from: Math.min(from, to), to },
    says: "empty",
    subject: [],
    because: NOT_FOUND,
    lostTo,
  };
}

/** Whether the ranges continue one that was settled for the same reason. */
function isStill(reason: string, open: readonly TimeRange[], stored: StoredSeries): boolean {
  return open.every((range) =>
    stored.settledRanges(range).some((settled) => settled.to === range.from && settled.reason === reason),
  );
}

/** Records have appeared later than the settle delay: what is younger than that is not covered any more. */
function findYoung({ isHead, isStale, asOf }: PageAnswer, rules: SeriesRules): TimeRange[] {
  const { lateness, settleDelay, isDaily } = rules;
  if (!isHead || isStale || lateness <= settleDelay || isDaily) return [];
  return [{ from: finalUntil({ madeAt: asOf, isStale }, lateness, rules), to: Number.MAX_SAFE_INTEGER }];
}

function includes({ from, to }: TimeRange, ts: Micros): boolean {
  return from <= ts && ts < to;
}
