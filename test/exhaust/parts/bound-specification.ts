import { isDeepStrictEqual } from "node:util";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import type {
  PageAnswer,
  Publication,
  SeriesRules,
  SettledRange,
  StoredSeries,
} from "../../../src/rule/answer.ts";
import type { UpperBound } from "../../../src/rule/provable-until.ts";
import { storedSeries } from "../../support/rule/stored-series.ts";

// What one page proves, moment by moment, from docs/promise.md alone: a moment is proven if no service that keeps the assumptions
// could still show a record there. The rule computes with bounds; nothing here does.

/** All that is stored, as far as it decides about the upper bound of a page. */
export interface StoredFacts {
  /** Rows that REST has served, and rows that it has not; each ascending. */
  readonly served: readonly Micros[];
  readonly live: readonly Micros[];
  readonly settled: readonly SettledRange[];
  readonly publication: Publication | undefined;
  /** Up to where REST has shown another series. */
  readonly othersTo: Micros;
  readonly servesRunningDay: boolean;
}

export interface BoundCase {
  readonly page: PageAnswer;
  /** Where what the page may prove begins. */
  readonly lower: Micros;
  readonly stored: StoredFacts;
  readonly rules: SeriesRules;
}

const HOUR = 3600 * MICROS_PER_SECOND;
/** How far the service's clock and ours may differ. */
const CLOCK_ERROR = 5 * MICROS_PER_SECOND;

export function toStored({ served, live, settled, ...others }: StoredFacts): StoredSeries {
  return storedSeries({ rows: served, previews: live, ledger: settled, ...others });
}

/** What is wrong with the bound that the rule computes; undefined: nothing. */
export function judgeBound(each: BoundCase, bound: UpperBound): string | undefined {
  const { page, lower } = each;
  const { until } = bound;
  const probes = [lower, until - 1, ...page.timestamps, ...page.timestamps.map((ts) => ts + 1)];
  for (const t of probes) {
    if (t < lower || t >= until) continue;
    const doubt = findDoubt(each, t);
    if (doubt !== undefined) return `proves ${t} of [${lower}, ${until}): ${doubt}`;
  }
  const first = Math.max(lower, until);
  if (first < page.provenFrom && findDoubt(each, first) === undefined)
    return `does not prove ${first}, and nothing speaks against it`;
  const expected = { ...tell(each), until };
  return isDeepStrictEqual(bound, expected)
    ? undefined
    : `tells ${JSON.stringify(bound)} instead of ${JSON.stringify(expected)}`;
}

/** Why a service that keeps the assumptions may still show a record at `t`; undefined: none may. */
function findDoubt(each: BoundCase, t: Micros): string | undefined {
  const doubt = findDoubtOfRest(each, t);
  if (doubt !== undefined || isContinued(each)) return doubt;
  const { page, lower, rules, stored } = each;
  const newest = shownRecords(each)[0];
  const isAhead = (tick: Micros) =>
    tick > page.asOf - HOUR &&
    (newest === undefined ? tick >= lower : tick - newest > rules.period / 2) &&
    findDoubtOfRest(each, tick) === undefined;
  if ((newest === undefined || t > newest) && stored.live.some(isAhead)) return "the websocket is ahead";
  return undefined;
}

/** Without the websocket. */
function findDoubtOfRest(each: BoundCase, t: Micros): string | undefined {
  const { page, stored, rules } = each;
  if (t >= page.provenFrom) return "not asked for";
  if (!isFinal(each, t, Math.max(rules.settleDelay, rules.lateness))) return "may still change";
  if (!isContinued(each)) return isPublished(each, t) ? undefined : "may not be published";
  const newestMayChange = page.isHead && stored.servesRunningDay && stored.publication?.quietMargin === 0;
  return newestMayChange && t >= (stored.publication?.publishedTo ?? 0) ? "a running day" : undefined;
}

function isContinued({ page: { isContinued, provenFrom, gap } }: BoundCase): boolean {
  return isContinued ?? provenFrom !== gap.to;
}

/** Records, and the spans of bars, are final this long after their end. */
function isFinal({ page, rules }: BoundCase, t: Micros, delay: Micros): boolean {
  if (page.madeAt === undefined) return true;
  return endOfStep(t, rules) + delay <= page.madeAt + (page.isStale ? 0 : CLOCK_ERROR);
}

function endOfStep(t: Micros, { step }: SeriesRules): Micros {
  return t - (t % step) + step;
}

/** The page's records that are not from the future. */
function shownRecords({ page, rules }: BoundCase): readonly Micros[] {
  return page.timestamps.filter((ts) => ts - page.asOf <= rules.period);
}

/** The page shows the present, and is the newest state of its server. */
function isOfPresent({ page }: BoundCase): boolean {
  return page.isHead && !page.isStale;
}

/** REST publishes in order: a record of it shows everything before the next one is due. */
function isPublished(each: BoundCase, t: Micros): boolean {
  const { page } = each;
  if (isShown(each, t)) return true;
  // A range is quiet as a whole or not at all.
  if (isShown(each, page.gap.to - 1)) return false;
  const margin = findQuietMargin(each);
  return margin !== undefined && endOfStep(t, each.rules) + margin <= page.asOf + CLOCK_ERROR;
}

function isShown(each: BoundCase, t: Micros): boolean {
  const { stored, page } = each;
  const isBelow = (ts: Micros) => t < ts + findReach(each);
  if (shownRecords(each).some(isBelow)) return true;
  if (isOfPresent(each)) return false;
  return (
    stored.served.some(isBelow) ||
    t < (stored.publication?.publishedTo ?? 0) ||
    stored.settled.some(
      ({ proof, to }) => to > page.gap.to && to > t && proof !== "empty" && proof !== "lost",
    )
  );
}

/** How long after a record the next one is due at the earliest; 0: the newest record itself may change. */
function findReach(each: BoundCase): Micros {
  const { page, stored, rules } = each;
  if (stored.servesRunningDay || showsRunningDay(each)) return 0;
  const distances = page.timestamps.map((ts, i) => (page.timestamps[i - 1] ?? ts) - ts);
  return Math.min(rules.period, ...distances.filter((distance) => 2 * distance > rules.period));
}

function showsRunningDay(each: BoundCase): boolean {
  const newest = shownRecords(each)[0];
  const { rules, page } = each;
  return rules.isDaily && newest !== undefined && newest + rules.period - page.asOf > HOUR;
}

/** Since when nothing was shown. */
function silentSince(each: BoundCase): Micros {
  const { stored } = each;
  const reach = findReach(each);
  const own = shownRecords(each).map((ts) => ts + reach);
  const before = isOfPresent(each)
    ? []
    : [...stored.served.map((ts) => ts + reach), stored.publication?.publishedTo ?? 0];
  return Math.max(0, ...own, ...before);
}

/** How old silence must be to count; undefined: it does not. */
function findQuietMargin(each: BoundCase): Micros | undefined {
  const { page, stored, rules } = each;
  if (isOfPresent(each) && !page.isSilenceConfirmed) return undefined;
  const since = silentSince(each);
  const youngest = page.asOf + CLOCK_ERROR - rules.quietMargin;
  const isRestInTime =
    stored.othersTo >= youngest - (youngest % rules.step) &&
    !stored.live.some((tick) => tick >= since && tick < page.gap.to);
  if (since === 0)
    return isRestInTime || rules.quietMargin > MICROS_PER_DAY ? rules.quietMargin : MICROS_PER_DAY;
  const silence = page.asOf - since - (rules.isDaily ? rules.period : 0);
  return silence > rules.quietMargin && (isRestInTime || silence > MICROS_PER_DAY)
    ? rules.quietMargin
    : undefined;
}

/** What the rule says beside the bound. */
function tell(each: BoundCase): Omit<UpperBound, "until"> {
  const { page, lower, rules } = each;
  const end = page.provenFrom;
  const told = { isFinal: isFinal(each, end - 1, rules.settleDelay), isUnpublished: false };
  if (isContinued(each)) return { ...told, publication: undefined, showsRunningDay: false };
  const delay = Math.max(rules.settleDelay, rules.lateness);
  const finalTo = page.madeAt === undefined ? end : page.madeAt + (page.isStale ? 0 : CLOCK_ERROR) - delay;
  const lastFinal = Math.min(end, finalTo - (finalTo % rules.step)) - 1;
  return {
    ...told,
    isUnpublished: lastFinal >= lower && !isPublished(each, lastFinal),
    publication: tellPublication(each),
    showsRunningDay: showsRunningDay(each),
  };
}

function tellPublication(each: BoundCase): Publication | undefined {
  const { page } = each;
  const askedTo = page.gap.to;
  if (isOfPresent(each)) {
    const publishedTo = silentSince(each);
    const quietMargin = publishedTo < askedTo ? (findQuietMargin(each) ?? 0) : 0;
    return { publishedTo, askedAt: page.asOf, askedTo, quietMargin };
  }
  const publishedTo = Math.max(0, ...shownRecords(each).map((ts) => ts + findReach(each)));
  return publishedTo < askedTo ? { publishedTo, askedAt: 0, askedTo, quietMargin: 0 } : undefined;
}
