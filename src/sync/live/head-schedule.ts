import type { SkippedTicks } from "../../ingest/commit/live-coverage.ts";
import { isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { SeriesHead } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { HEAD_BARS } from "../history/gap-planner.ts";

/** What decides when REST polls the head of a series. Timestamps are by the service's clock. */
export interface HeadScheduleRules {
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  /** How often REST confirms what the live feed has covered. */
  readonly confirmEvery: Micros;
  /** The start of the series' live span; undefined: the live feed does not cover it. */
  readonly liveSince: Micros | undefined;
  readonly seriesCount: number;
  /** Series that the live feed does not cover. */
  readonly polledCount: number;
  /** Series with ticks, covered live or not: one round of confirmations polls them all. */
  readonly tickSeriesCount: number;
  readonly pollsPerSecond: number;
  /** When a poll may check whether the live feed skipped a tick; undefined: no tick seems missing. */
  readonly recheckFrom?: Micros | undefined;
  /** Series with a possibly skipped tick. */
  readonly recheckCount?: number;
  /** Daily polls are not spread over the hour: the nightly job needs them now. */
  readonly isHurried?: boolean;
}

const HOUR = 3600 * MICROS_PER_SECOND;
/** How often a bar is requested that the service has not published after its day. */
const UNPUBLISHED_BAR_INTERVAL = 600 * MICROS_PER_SECOND;
/** Polls and rechecks of a large selection must fit into its request budget. */
const MAX_POLLS_PER_SECOND = 5;

/** Leaves half of the limit, configured or learned, to history and to snapshot polls. Null: there is no limit. */
export function pollsPerSecond(requestsPerSecond: number | null): number {
  return Math.min(MAX_POLLS_PER_SECOND, (requestsPerSecond ?? Number.POSITIVE_INFINITY) / 2);
}

/**
 * When to poll the head of a series next:
 * - covered live, confirmed by REST: every `confirmEvery` or as often as the budget allows, each series at its own time;
 * - ticks missed: at once, and again when the settle delay has passed;
 * - a tick possibly skipped: after the settle delay, all such series in turn;
 * - not covered live: at cadence or as often as the budget allows, the longest wait first.
 */
export function nextHeadPoll(head: SeriesHead, rules: HeadScheduleRules): Micros {
  const { cadence, settleDelay, liveSince, seriesCount, polledCount, recheckFrom, recheckCount = 1 } = rules;
  /** How long it takes to poll `count` series. */
  const roundOf = (count: number) => (count / rules.pollsPerSecond) * MICROS_PER_SECOND;
  const phase = phaseOf(head);
  const dailyPhase = rules.isHurried ? 0 : phase;
  const polledAt = lastPolledAt(head, settleDelay);
  if (isDaily(head.key.stream))
    return nextBarPoll(head, { polledAt, settleDelay, phase: dailyPhase, round: roundOf(seriesCount) });
  if (head.isNotFound) return startOfNextDay(polledAt) + settleDelay + dailyPhase * HOUR;
  if (liveSince === undefined) return polledAt + Math.max(cadence, roundOf(polledCount));
  if (polledAt < liveSince) return liveSince;
  if (confirmedTo(head, settleDelay) < liveSince) {
    const first = liveSince + settleDelay + phase * Math.min(HOUR, roundOf(seriesCount));
    // If REST lags behind the live feed, wait until it can have new records.
    return polledAt < first ? first : polledAt + Math.max(cadence, roundOf(seriesCount));
  }
  const interval = Math.max(rules.confirmEvery, roundOf(rules.tickSeriesCount));
  const earliest = polledAt + interval / 2;
  const confirmation = (Math.ceil(earliest / interval - phase) + phase) * interval;
  if (recheckFrom === undefined) return confirmation;
  // One round after the last poll on average; the phase spreads series that were all polled at once.
  const round = roundOf(recheckCount);
  return Math.min(
    confirmation,
    Math.max(recheckFrom + settleDelay + phase * round, polledAt + (phase + 0.5) * round),
  );
}

/** When REST was last asked for the head. A poll covers at most up to one settle delay before it. */
export function lastPolledAt({ from, publication }: SeriesHead, settleDelay: Micros): Micros {
  return Math.max(from + settleDelay, publication?.askedAt ?? 0);
}

/**
 * REST was asked for everything up to here, and has shown a later record or is quiet. The covered range may end earlier: late
 * records delay its end, and so does a quiet series.
 */
export function confirmedTo({ from, publication }: SeriesHead, settleDelay: Micros): Micros {
  if (!publication) return from;
  const { askedAt, publishedTo, quietMargin } = publication;
  const askedTo = askedAt - settleDelay;
  return Math.max(from, quietMargin > 0 ? askedTo : Math.min(askedTo, publishedTo));
}

/** In the hour after the bar's day has closed; an overdue bar is due at once, and again while the service has not published it. */
function nextBarPoll(
  { from, publication }: SeriesHead,
  poll: {
    readonly polledAt: Micros;
    readonly settleDelay: Micros;
    readonly phase: number;
    readonly round: Micros;
  },
): Micros {
  const quietMargin = publication?.quietMargin ?? 0;
  const due = startOfNextDay(from) + Math.max(poll.settleDelay, quietMargin) + poll.phase * HOUR;
  const again = poll.polledAt + Math.max(UNPUBLISHED_BAR_INTERVAL, poll.round);
  return poll.polledAt < due ? due : again;
}

/** Whether one page fills the gap of the head up to `until`. */
export function isHeadShort(head: SeriesHead, until: Micros): boolean {
  return !isDaily(head.key.stream) || (!head.isNew && until - head.from <= HEAD_BARS * MICROS_PER_DAY);
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

const MINUTE = 60 * MICROS_PER_SECOND;
/** With more false alarms the confirmation is due before the recheck anyway. */
const MAX_FALSE_ALARMS = 7;
/**
 * Bounds the memory while REST fails. Beyond it a new skip replaces the newest one: the oldest decides when
 * to poll, the newest how far the poll must reach.
 */
const MAX_TRACKED_SKIPS = 8;

/**
 * Ticks of one series that the live feed may have skipped, until REST shows whether it did. A series that
 * ticks rarely raises a false alarm with every tick: each false alarm doubles the delay of the next recheck.
 */
export class SkipTracker {
  #skips: SkippedTicks[] = [];
  #falseAlarms = 0;

  add(skip: SkippedTicks): void {
    this.#skips.splice(MAX_TRACKED_SKIPS - 1, 1, skip);
  }

  get hasSkips(): boolean {
    return this.#skips.length > 0;
  }

  /**
   * When to recheck the oldest skip; undefined: there is none. `settledTo`: REST has shown everything before it; `polledAt`:
   * the last poll; `liveSince`: ticks before it are missing for another reason and are fetched anyway.
   */
  recheckFrom(settledTo: Micros, polledAt: Micros, liveSince: Micros): Micros | undefined {
    this.#skips = this.#skips.filter(({ after, at }) => at > settledTo && after >= liveSince);
    const [oldest] = this.#skips;
    if (!oldest) return undefined;
    return this.#falseAlarms === 0
      ? oldest.at
      : Math.max(oldest.at, polledAt + 2 ** (this.#falseAlarms - 1) * MINUTE);
  }

  /** REST has shown everything up to `settledTo`: resolves older skips and counts false alarms. */
  resolve(reader: Connection, { key }: SeriesHead, settledTo: Micros): void {
    const resolved = this.#skips.filter(({ at }) => at <= settledTo);
    this.#skips = this.#skips.filter(({ at }) => at > settledTo);
    if (resolved.length === 0) this.#falseAlarms >>= 1;
    else if (resolved.some(({ after, at }) => countStoredRows(reader, key, { from: after + 1, to: at }) > 0))
      this.#falseAlarms = 0;
    else this.#falseAlarms = Math.min(MAX_FALSE_ALARMS, this.#falseAlarms + 1);
  }
}
