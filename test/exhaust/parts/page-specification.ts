import { MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
  type PageAnswer,
  type SeriesRules,
  type SettledRange,
} from "../../../src/rule/answer.ts";
import { endsAbove } from "../../support/rule/stored-series.ts";
import { isIn } from "../memory-ledger.ts";
import type { StoredContent } from "./stored-content.ts";

// What a page says, moment by moment: for small pages whose bounds are whole numbers. `interpret` says it by ranges.

export function moments({ from, to }: TimeRange): readonly Micros[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}

/** The record just below what earlier pages have proven. */
const previousOf = ({ provenFrom, gap, isContinued = provenFrom < gap.to }: PageAnswer) =>
  isContinued ? [provenFrom - 1] : [];

/** What is said of each moment of a proven range, and of the rows that the page lacks. As texts, in any order. */
export function specifyRecords(
  proven: TimeRange,
  page: PageAnswer,
  { served, previews }: Pick<StoredContent, "served" | "previews">,
  holes: readonly TimeRange[],
): readonly string[] {
  const shown = new Set([...page.timestamps, ...previousOf(page)]);
  const inHole = (ts: Micros) => holes.some((each) => isIn(each, ts));
  const lacks = (ts: Micros) => !page.isStale && isIn(proven, ts) && !shown.has(ts);
  const [missing, live] = [served.filter(lacks), previews.filter(lacks)];
  const outside = missing.filter((ts) => !inHole(ts));
  // More than two, and more than a tenth of the page.
  const isMany = outside.length > 2 && 10 * outside.length > page.timestamps.length;
  const withdrawn = [
    ...holes.map((range) => ({ range, rows: [...missing, ...live].filter((ts) => isIn(range, ts)) })),
    ...(isMany ? runsOf(moments(proven).filter((ts) => !inHole(ts))) : []).map((run) => {
      const rows = outside.filter((ts) => isIn(run, ts));
      const above = moments(run).find((ts) => ts > Math.max(...rows) && shown.has(ts));
      return { range: { from: Math.min(...rows), to: above ?? run.to }, rows };
    }),
  ].filter(({ rows }) => rows.length > 0);
  const gone = [...live.filter((ts) => !inHole(ts)), ...(isMany ? [] : outside)];
  const texts = withdrawn.map(({ range, rows }) => {
    const says = moments(range).some((ts) => shown.has(ts)) ? "rows" : "empty";
    return `withdrawn ${range.from} ${range.to} ${says} [${rows.toSorted((a, b) => a - b)}] ${NO_RECORDS}`;
  });
  if (gone.length > 0)
    texts.push(`gone ${proven.from} ${proven.to} rows [${gone.toSorted((a, b) => a - b)}] ${NO_RECORDS}`);
  const kept = moments(proven).filter((ts) => !withdrawn.some(({ range }) => isIn(range, ts)));
  for (const run of runsOf(kept)) {
    const lowest = moments(run).find((ts) => shown.has(ts));
    // A page that lacks many rows says nothing below its own records, a stale one nothing where it has none.
    if (lowest === undefined && (page.isStale || withdrawn.length > 0)) continue;
    const covered = moments(run).filter((ts) => withdrawn.length === 0 || ts >= (lowest ?? run.from));
    for (const ts of covered) texts.push(`${ts} ${lowest === undefined ? "empty" : "rows"} ${NO_RECORDS}`);
  }
  return texts;
}

/** The longest ranges of moments without one left out. */
function runsOf(sorted: readonly Micros[]): readonly TimeRange[] {
  const starts = sorted.filter((ts) => !sorted.includes(ts - 1));
  const ends = sorted.filter((ts) => !sorted.includes(ts + 1));
  return starts.map((from, i) => ({ from, to: (ends[i] ?? from) + 1 }));
}

export interface SpecifiedPage {
  /** The moments that its records prove; undefined: none. */
  readonly proven: readonly Micros[] | undefined;
  readonly isComplete: boolean;
  readonly reopened: readonly SettledRange[];
  /** The claim about what is older, as text. */
  readonly end: string | undefined;
  readonly endsAt: Micros | undefined;
}

/** The clock of the service is known to five seconds. */
const SLACK = 5 * MICROS_PER_SECOND;

export function specifyPage(
  page: PageAnswer,
  content: StoredContent,
  holes: readonly TimeRange[],
  rules: SeriesRules,
): SpecifiedPage {
  const { gap, provenFrom, isLast, isStale, madeAt = Number.POSITIVE_INFINITY } = page;
  const final = madeAt + (isStale ? 0 : SLACK);
  const own = page.timestamps.length > 0 ? Math.min(...page.timestamps) : undefined;
  const oldest = own ?? previousOf(page)[0];
  const isAtStart =
    oldest !== undefined &&
    (oldest <= gap.from || (oldest < rules.windowStart && gap.from + rules.period > oldest));
  const proves = (ts: Micros) => (isLast && isAtStart) || (own !== undefined && ts > own);
  const walked = moments({ from: gap.from, to: provenFrom });
  const proven = walked.filter((ts) => ts < final && proves(ts));
  const isEnd = isLast && !isAtStart;
  const ends = isStale || own === undefined ? [] : endsAbove(content.ledger, own);
  const hasRecord = (range: SettledRange) => page.timestamps.some((ts) => isIn(range, ts));
  const disproved = content.ledger.filter((each) => each.proof === "empty" && hasRecord(each));
  const reopened = [...new Set([...ends, ...disproved])];
  const end = isEnd && !isStale ? specifyEnd(page, oldest, final, { content, holes, reopened, rules }) : {};
  return {
    proven: proven.length > 0 ? proven : undefined,
    isComplete: final >= provenFrom && (isEnd || walked.every(proves)),
    reopened,
    end: end.text,
    endsAt: end.endsAt,
  };
}

interface EndContext {
  readonly content: StoredContent;
  readonly holes: readonly TimeRange[];
  readonly reopened: readonly SettledRange[];
  readonly rules: SeriesRules;
}

function specifyEnd(
  { gap, provenFrom }: PageAnswer,
  oldest: Micros | undefined,
  final: Micros,
  { content: { served, ledger, targetStart }, holes, reopened, rules }: EndContext,
): { readonly text?: string; readonly endsAt?: Micros } {
  const servedFrom = oldest ?? gap.to;
  const from = lowestSelected(gap.from, targetStart, rules);
  const to = Math.min(provenFrom, final, (oldest ?? Number.POSITIVE_INFINITY) + 1);
  // REST served them, they have not left the window, and nobody asks about them otherwise.
  const contradicted = served.filter(
    (ts) => ts < servedFrom && ts >= rules.windowStart && !holes.some((each) => isIn(each, ts)),
  );
  const hasMoved = contradicted.length > 0;
  const endsAt = hasMoved ? { endsAt: servedFrom } : {};
  const standing = ledger.filter((each) => !reopened.includes(each));
  const isOpen = (ts: Micros) => !standing.some((each) => isIn(each, ts));
  const open = moments({ from, to }).filter(isOpen);
  if (open.length === 0) return endsAt;
  const starts = open.filter((ts) => !open.includes(ts - 1));
  const isKnown = oldest === undefined && starts.every((ts) => continues(ledger, ts, NOTHING_OLDER));
  const hasEnded = hasMoved && oldest === undefined && !served.some((ts) => ts >= gap.to);
  const hasLeft = served.some((ts) => ts >= from && ts < servedFrom);
  const lostTo = hasEnded
    ? Math.min(gap.to, Math.max(...contradicted) + rules.step)
    : hasMoved || hasLeft
      ? servedFrom
      : undefined;
  const kind = hasMoved ? "end moved" : isKnown ? "still absent" : "end";
  const subject = oldest === undefined ? "" : oldest;
  return { ...endsAt, text: `${kind} ${from} ${to} empty [${subject}] ${NOTHING_OLDER} ${lostTo}` };
}

/** A range that was settled for the reason ends there. */
function continues(ledger: readonly SettledRange[], ts: Micros, because: string): boolean {
  return ledger.some(({ to, reason }) => to === ts && reason === because);
}

/** An absence reaches down to where the settings begin and the service may still serve, but not up into the gap. */
function lowestSelected(gapFrom: Micros, targetStart = gapFrom, { floor }: SeriesRules): Micros {
  return Math.min(gapFrom, Math.max(floor, targetStart));
}

export function specifyNotFound(
  range: TimeRange,
  { served, previews, ledger, targetStart }: StoredContent,
  rules: SeriesRules,
): string {
  const rows = [...served, ...previews].filter((ts) => ts < range.to);
  const kind = continues(ledger, range.from, NOT_FOUND) ? "still absent" : "not found";
  const lostTo = rows.length > 0 ? Math.max(...rows) + rules.step : undefined;
  return `${kind} ${lowestSelected(range.from, targetStart, rules)} ${range.to} empty [] ${NOT_FOUND} ${lostTo}`;
}

export function specifyContradiction(page: PageAnswer): string | undefined {
  const { timestamps, foreign, gap, provenFrom, anchor = Number.NEGATIVE_INFINITY } = page;
  if (foreign !== 0) return "foreign_rows";
  if (`${timestamps.toSorted((a, b) => b - a)}` !== `${timestamps}`) return "disordered";
  // A walk that restarted may repeat what is not above its anchor.
  const isProvenBefore = (ts: Micros) => isIn({ from: provenFrom, to: gap.to }, ts) && !(ts <= anchor);
  return timestamps.some(isProvenBefore) ? "newer_than_proven" : undefined;
}

/** The first moment that may still get records, if they come later than the settle delay. */
export function specifyYoung(
  { isHead, isStale, asOf }: PageAnswer,
  { lateness, settleDelay, isDaily, step }: SeriesRules,
): Micros | undefined {
  if (isDaily || isStale || !isHead || settleDelay >= lateness) return undefined;
  const settledTo = asOf + SLACK - lateness;
  return settledTo - (((settledTo % step) + step) % step);
}
