import { MAX_STEP_PERIODS } from "../../ingest/commit/live.ts";
import { isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { MAX_SILENT_PERIODS } from "../../service/limits.ts";
import type { SeriesHead } from "../../warehouse/coverage/series-queries.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
/** How often a bar is requested that the service has not published after its day. */
const UNPUBLISHED_BAR_INTERVAL = 600 * MICROS_PER_SECOND;
/** Polls of a large selection must fit into its request budget. */
const MAX_POLLS_PER_SECOND = 5;

/**
 * What is known about the head of a series: the ledger says what REST has shown, the live feed what it has delivered.
 * Timestamps are by the service's clock.
 */
export interface HeadState {
  readonly series: SeriesHead;
  /** When REST was last asked for the head. */
  readonly askedAt: Micros;
  /** REST was asked for everything up to here, and has shown a later record or is quiet. */
  readonly publishedTo: Micros;
  /** Since when the series' subscription receives everything; undefined: the live feed does not cover it. */
  readonly span: Micros | undefined;
  /** Ticks before this may be missing, whatever the subscription says; infinite while REST has ticks that did not arrive. */
  readonly missingTo: Micros;
  /** The last tick before an unusual silence; undefined: every tick came in time. */
  readonly lastLive: Micros | undefined;
  /** The tick that ended the silence; undefined: it lasts. */
  readonly resumedAt: Micros | undefined;
  /** The time between two ticks, as REST has confirmed it. */
  readonly period: Micros;
}

/** The head as the ledger has it. `known`: what the live feed has delivered; undefined: nothing. */
export function readHead(
  series: SeriesHead,
  { cadence, settleDelay }: Pick<HeadTiming, "cadence" | "settleDelay">,
  known?: HeadState,
): HeadState {
  const { from, publication } = series;
  const live = known ?? {
    span: undefined,
    missingTo: 0,
    lastLive: undefined,
    resumedAt: undefined,
    period: cadence,
  };
  if (!publication) return { ...live, series, askedAt: from + settleDelay, publishedTo: from };
  // A poll covers at most up to one settle delay before it. Late records end the covered range below, and so does a quiet series.
  const askedTo = publication.askedAt - settleDelay;
  const shownTo = publication.quietMargin > 0 ? askedTo : Math.min(askedTo, publication.publishedTo);
  const askedAt = Math.max(from + settleDelay, publication.askedAt);
  return { ...live, series, askedAt, publishedTo: Math.max(from, shownTo) };
}

/** Since when the live feed delivers every tick of the series; undefined: it does not. */
export function liveSince({ span, missingTo }: HeadState): Micros | undefined {
  return span === undefined || missingTo === Number.POSITIVE_INFINITY ? undefined : Math.max(span, missingTo);
}

/** REST has to say whether the feed skipped ticks. */
export function isInDoubt({ lastLive, resumedAt, period }: HeadState, now: Micros): boolean {
  if (lastLive === undefined) return false;
  return resumedAt !== undefined || lastLive + MAX_SILENT_PERIODS * period <= now;
}

/** The subscription of the series has received everything since `span`, or receives nothing. */
export function follow(head: HeadState, span: Micros | undefined): HeadState {
  if (span === head.span) return head;
  return { ...head, span, missingTo: 0, lastLive: undefined, resumedAt: undefined };
}

/** `lastTick`: the newest tick if it is late, else undefined. */
export function listen(head: HeadState, lastTick: Micros | undefined, now: Micros): HeadState {
  const { span, missingTo, lastLive, resumedAt } = head;
  if (span === undefined) return head;
  const isMissing = missingTo === Number.POSITIVE_INFINITY;
  if (lastTick !== undefined) {
    const silentSince = Math.max(lastTick, span, missingTo);
    if (isMissing || (lastLive === silentSince && resumedAt === undefined)) return head;
    return { ...head, lastLive: silentSince, resumedAt: undefined };
  }
  // If ticks are missing in a silence that REST was not asked about, the step to the next tick shows it: see `skip`.
  if (lastLive === undefined || resumedAt !== undefined) return head;
  return { ...head, lastLive: undefined, missingTo: isMissing ? now : missingTo };
}

/** The feed has delivered nothing between two ticks. One such step at a time: the poll for it fetches later ones too. */
export function skip(head: HeadState, after: Micros, at: Micros): HeadState {
  const isKnown = at <= head.publishedTo || after < (liveSince(head) ?? Number.POSITIVE_INFINITY);
  if (isKnown || head.lastLive !== undefined || at - after <= MAX_STEP_PERIODS * head.period) return head;
  return { ...head, lastLive: after, resumedAt: at };
}

/**
 * REST was polled at `now`, and `series` is what it has shown. If it has ticks that did not arrive, the live span ends, or
 * skipped ones are fetched now. If not, the series is quiet: its period doubles. What was learned counts until the next day.
 */
export function resolve(
  head: HeadState,
  series: SeriesHead,
  now: Micros,
  timing: Pick<HeadTiming, "cadence" | "settleDelay">,
  hasTicks: (range: TimeRange) => boolean,
): HeadState {
  const { cadence } = timing;
  const shown = readHead(series, timing, head);
  const { lastLive, resumedAt, missingTo, publishedTo } = shown;
  if (lastLive === undefined)
    return startOfNextDay(head.askedAt) > now ? shown : { ...shown, period: cadence };
  if (missingTo === Number.POSITIVE_INFINITY) return shown;
  const isTooEarly =
    resumedAt === undefined ? now < lastLive + MAX_SILENT_PERIODS * cadence : publishedTo < resumedAt;
  if (isTooEarly) return shown;
  // REST may stamp the same tick some milliseconds earlier or later, and the newest one may be on its way.
  const from = lastLive + cadence / 2;
  const hasMissed = hasTicks({ from, to: resumedAt === undefined ? now - cadence : resumedAt - cadence / 2 });
  let { period } = shown;
  if (resumedAt !== undefined)
    return { ...shown, lastLive: undefined, resumedAt: undefined, period: hasMissed ? cadence : 2 * period };
  if (hasMissed) return { ...shown, missingTo: Number.POSITIVE_INFINITY, period: cadence };
  while (isInDoubt({ ...shown, period }, now)) period *= 2;
  return { ...shown, period };
}

/** The settings, and how much there is to poll. */
export interface HeadTiming {
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  /** How often REST confirms what the live feed has delivered. */
  readonly confirmEvery: Micros;
  readonly pollsPerSecond: number;
  readonly seriesCount: number;
  /** Series with ticks, covered live or not: one round of confirmations polls them all. */
  readonly tickSeriesCount: number;
  /** Series that the live feed does not deliver. */
  readonly polledCount: number;
  /** Series of which REST has to say whether the feed skipped ticks. */
  readonly doubtCount: number;
  /** Daily polls are not spread over the hour: the nightly job needs them now. */
  readonly isHurried?: boolean;
}

/** Leaves half of the limit, configured or learned, to history and to snapshot polls. Null: there is no limit. */
export function pollsPerSecond(requestsPerSecond: number | null): number {
  return Math.min(MAX_POLLS_PER_SECOND, (requestsPerSecond ?? Number.POSITIVE_INFINITY) / 2);
}

/**
 * When REST is polled for a head next:
 * - not delivered live: at cadence or as often as the budget allows, the longest wait first;
 * - ticks missed: at once, and again when the settle delay has passed;
 * - silent for 2.5 periods, or a tick possibly skipped: at once or after the settle delay, all such series in turn;
 * - else every `confirmEvery` or as often as the budget allows, each series at its own time.
 */
export function dueAt(head: HeadState, timing: HeadTiming): Micros {
  const { cadence, settleDelay, seriesCount } = timing;
  const { series, askedAt, publishedTo, lastLive, resumedAt, period } = head;
  /** How long it takes to poll `count` series. */
  const roundOf = (count: number) => (count / timing.pollsPerSecond) * MICROS_PER_SECOND;
  const phase = phaseOf(series);
  const dailyPhase = timing.isHurried ? 0 : phase;
  if (isDaily(series.key.stream)) return barDueAt(head, settleDelay, dailyPhase, roundOf(seriesCount));
  if (series.isNotFound) return startOfNextDay(askedAt) + settleDelay + dailyPhase * HOUR;
  const since = liveSince(head);
  if (since === undefined) return askedAt + Math.max(cadence, roundOf(timing.polledCount));
  if (askedAt < since) return since;
  if (publishedTo < since) {
    const first = since + settleDelay + phase * Math.min(HOUR, roundOf(seriesCount));
    // If REST lags behind the live feed, wait until it can have new records.
    return askedAt < first ? first : askedAt + Math.max(cadence, roundOf(seriesCount));
  }
  const interval = Math.max(timing.confirmEvery, roundOf(timing.tickSeriesCount));
  const confirmation = (Math.ceil((askedAt + interval / 2) / interval - phase) + phase) * interval;
  if (lastLive === undefined) return confirmation;
  const doubtAt = resumedAt === undefined ? lastLive + MAX_SILENT_PERIODS * period : resumedAt + settleDelay;
  // One round after the last poll on average; the phase spreads series that were all polled at once.
  const round = roundOf(timing.doubtCount);
  return Math.min(confirmation, Math.max(doubtAt + phase * round, askedAt + (phase + 0.5) * round));
}

/** In the hour after the bar's day has closed; an overdue bar is due at once, and again while the service has not published it. */
function barDueAt(
  { askedAt, series: { from, publication } }: HeadState,
  settleDelay: Micros,
  phase: number,
  round: Micros,
): Micros {
  const due = startOfNextDay(from) + Math.max(settleDelay, publication?.quietMargin ?? 0) + phase * HOUR;
  return askedAt < due ? due : askedAt + Math.max(UNPUBLISHED_BAR_INTERVAL, round);
}

function startOfNextDay(ts: Micros): Micros {
  return (Math.floor(ts / MICROS_PER_DAY) + 1) * MICROS_PER_DAY;
}

/** In [0, 1), spread evenly over all series and stable across restarts (FNV-1a). */
function phaseOf({ key, indexType, indexId }: SeriesHead): number {
  let hash = 0x811c9dc5;
  for (const char of `${key.stream} ${indexType} ${indexId}`) {
    hash ^= char.charCodeAt(0);
    hash = Math.imul(hash, 0x01000193);
  }
  // The low bits depend too much on the last characters: mix them.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return (hash >>> 0) / 2 ** 32;
}
