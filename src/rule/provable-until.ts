import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { PageAnswer, Publication, SeriesRules, StoredSeries } from "./answer.ts";

/** The service's clock is known to about a second, and the `Date` header has whole seconds. */
const DATE_HEADER_SLACK_MICROS = 5 * MICROS_PER_SECOND;
/** REST may lag behind the websocket this far; a live tick that REST lacks for longer is withdrawn. */
const MAX_REST_LAG_MICROS = 3600 * MICROS_PER_SECOND;
/** After this much silence a series counts as quiet, even if no other series shows that REST does not lag. */
const MAX_LAG_MICROS = MICROS_PER_DAY;
/** A bar is served this long before its day ends, or it is not known to be that of a running day: clocks differ. */
const MIN_RUNNING_MICROS = 3600 * MICROS_PER_SECOND;

export interface UpperBound {
  /** The page proves nothing from here on. */
  readonly until: Micros;
  /** The page was made late enough to prove all that it was requested for. */
  readonly isFinal: boolean;
  /** The service has not published everything up to the end of the gap. */
  readonly isUnpublished: boolean;
  /** What the first page of a walk has shown of the head; undefined: nothing new. */
  readonly publication: Publication | undefined;
  /** The newest bar is that of a day that has not ended. */
  readonly showsRunningDay: boolean;
}

/**
 * The one upper bound of what a page proves: the least of where its walk begins, of what was final when the page was made, of
 * what REST has published, and of what REST lacks that the websocket has delivered.
 */
export function provableUntil(
  page: PageAnswer,
  lower: Micros,
  stored: StoredSeries,
  rules: SeriesRules,
): UpperBound {
  const asked = page.provenFrom;
  const isFinal = finalUntil(page, rules.settleDelay, rules) >= asked;
  // Records have appeared later than the settings say.
  const delay = Math.max(rules.settleDelay, rules.lateness);
  const final = Math.min(asked, finalUntil(page, delay, rules));
  const bound = { isFinal, isUnpublished: false, publication: undefined, showsRunningDay: false };
  // A page after the first one continues below records that are published.
  if (findPrevious(page) !== undefined)
    return { ...bound, until: Math.min(final, finalBarsEnd(page, stored)) };
  // A record from the future shows nothing.
  const newest = page.timestamps.find((ts) => ts <= page.asOf + rules.period);
  const published = publishedUntil(page, newest, stored, rules);
  const to = Math.min(final, published.until);
  const until = belowLiveTicks({ from: lower, to }, newest, page, stored, rules);
  return { ...bound, ...published, until, isUnpublished: lower < final && published.until < final };
}

/** The record just below `provenFrom`: the oldest one of the page before. A first page has it itself. */
export function findPrevious({
  gap,
  provenFrom,
  isContinued = provenFrom < gap.to,
}: Pick<PageAnswer, "gap" | "provenFrom" | "isContinued">): Micros | undefined {
  return isContinued ? provenFrom - 1 : undefined;
}

/** The first page of the head has shown the newest bar, and it may not be final. */
function finalBarsEnd({ isHead }: PageAnswer, stored: StoredSeries): Micros {
  const publication = isHead && stored.servesRunningDay ? stored.publication : undefined;
  return publication?.quietMargin === 0 ? publication.publishedTo : Number.POSITIVE_INFINITY;
}

/** The end of what is final at `now`, in whole steps: younger records may still change. */
function finalAt(now: Micros, settleDelay: Micros, step: Micros): Micros {
  return Math.floor((now - settleDelay) / step) * step;
}

/** A page proves nothing about the time after it was made, whatever this machine's clock says. */
export function finalUntil(
  { madeAt, isStale }: Pick<PageAnswer, "madeAt" | "isStale">,
  settleDelay: Micros,
  { step }: Pick<SeriesRules, "step">,
): Micros {
  if (madeAt === undefined) return Number.POSITIVE_INFINITY;
  return finalAt(madeAt + (isStale ? 0 : DATE_HEADER_SLACK_MICROS), settleDelay, step);
}

/**
 * A page proves nothing above the newest record that REST has shown plus one period, unless the series is quiet. A page of the
 * head counts alone: another server may have shown more.
 */
function publishedUntil(
  page: PageAnswer,
  newest: Micros | undefined,
  stored: StoredSeries,
  rules: SeriesRules,
): Pick<UpperBound, "until" | "publication" | "showsRunningDay"> {
  const { asOf, gap } = page;
  const isHead = page.isHead && !page.isStale;
  const showsRunningDay = rules.isDaily && (newest ?? 0) + rules.period > asOf + MIN_RUNNING_MICROS;
  // A service that serves the bar of a running day, and lags, serves an earlier state of it after that day too.
  const isNewestFinal = !(showsRunningDay || stored.servesRunningDay);
  const period = isNewestFinal ? shortestPeriod(page.timestamps, rules.period) : 0;
  const shownTo = newest === undefined ? 0 : newest + period;
  if (!isHead && shownTo >= gap.to) return { until: gap.to, publication: undefined, showsRunningDay };
  const publishedTo = isHead ? shownTo : Math.max(shownTo, shownBefore(gap.to, period, stored));
  const quiet = publishedTo < gap.to ? quietMarginOf(page, publishedTo, stored, rules) : undefined;
  const quietTo = finalAt(asOf + DATE_HEADER_SLACK_MICROS, quiet ?? 0, rules.step);
  const until =
    quiet === undefined ? publishedTo : Math.max((newest ?? -1) + 1, withinPresent(quietTo, stored, rules));
  const publication = isHead
    ? { publishedTo, askedAt: asOf, askedTo: gap.to, quietMargin: quiet ?? 0 }
    : { publishedTo: shownTo, askedAt: 0, askedTo: gap.to, quietMargin: 0 };
  return { until, publication, showsRunningDay };
}

/** Where two clocks differ, an absence ends with the earlier present, unless another series has records after that. */
export function withinPresent(
  to: Micros,
  stored: StoredSeries,
  { present = to, step }: Pick<SeriesRules, "present" | "step">,
): Micros {
  return to <= present || stored.hasOtherPublished(to) ? to : finalAt(present, 0, step);
}

/** Ticks that are refreshed every 30 seconds may be some milliseconds less apart: the next one may come that early too. */
function shortestPeriod(timestamps: readonly Micros[], period: Micros): Micros {
  let shortest = period;
  let before = Number.POSITIVE_INFINITY;
  for (const ts of timestamps) {
    // A record in between is no sign of the period.
    if (before - ts > period / 2) shortest = Math.min(shortest, before - ts);
    before = ts;
  }
  return shortest;
}

/** Up to where earlier pages have shown records of the series; beyond `end` it does not matter how far. */
function shownBefore(end: Micros, period: Micros, stored: StoredSeries): Micros {
  const all = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER };
  const newest = stored.newestServed(all);
  const isProvenAbove = stored.settledRanges({ ...all, from: end + 1 }).some(({ proof }) => proof === "rows");
  return Math.max(
    stored.publication?.publishedTo ?? 0,
    newest === undefined ? 0 : newest + period,
    isProvenAbove ? end : 0,
  );
}

/**
 * Silence above the newest record proves nothing: the service may publish late. It counts if a second response confirms it, it
 * lasts longer than the margin, and REST is not late as a whole. Returns how long before `asOf` it ends to count; undefined: the
 * series is not quiet. If REST has shown no record at all, it may be late with the first ones.
 */
function quietMarginOf(
  page: PageAnswer,
  publishedTo: Micros,
  stored: StoredSeries,
  { quietMargin, isDaily, period, step }: SeriesRules,
): Micros | undefined {
  // The walk itself confirms silence in the middle of the history, where it looks suspicious.
  const isConfirmed = page.isSilenceConfirmed || !page.isHead || page.isStale;
  if (!isConfirmed) return undefined;
  const quietTo = finalAt(page.asOf + DATE_HEADER_SLACK_MICROS, quietMargin, step);
  // A newer live tick shows that REST lags for this series.
  const isOtherPublished = () =>
    stored.newestLive({ from: publishedTo, to: page.gap.to }) === undefined &&
    stored.hasOtherPublished(quietTo);
  if (publishedTo === 0) return isOtherPublished() ? quietMargin : Math.max(quietMargin, MAX_LAG_MICROS);
  // A bar is due at the end of its day.
  const silence = page.asOf - (publishedTo + (isDaily ? period : 0));
  if (silence <= quietMargin) return undefined;
  return silence > MAX_LAG_MICROS || isOtherPublished() ? quietMargin : undefined;
}

/**
 * The websocket may be ahead of REST: live ticks newer than the first page's newest record are not in REST yet, so the page
 * proves only up to that record, and withdraws none of them.
 */
function belowLiveTicks(
  { from, to }: TimeRange,
  newest: Micros | undefined,
  { asOf }: PageAnswer,
  stored: StoredSeries,
  rules: SeriesRules,
): Micros {
  // A preview near the newest record is that record, stamped by another clock.
  const above = newest === undefined ? from - 1 : newest + previewTolerance(rules);
  const live = stored.newestLive({ from: Math.max(above, asOf - MAX_REST_LAG_MICROS) + 1, to });
  if (live === undefined) return to;
  return newest === undefined ? from : newest + 1;
}

/** A preview closer than this to a record is that record. */
export function previewTolerance({ period }: Pick<SeriesRules, "period">): Micros {
  return period / 2;
}
