import type { Confirmations } from "../../model/status/confirmations.ts";
import {
  cadenceOf,
  type HistoryStream,
  isDaily,
  settleDelay,
  streamTable,
  WINDOW_EDGE_MARGIN_MICROS,
} from "../../model/streams.ts";
import { formatDay, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import {
  intersect,
  normalise,
  subtract,
  type TimeRange,
  type TimeRanges,
  union,
} from "../../model/time-range.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import { type ConfirmationRules, nextAskAt } from "../../rule/confirm.ts";
import { computeTargetEnd, computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { type LedgerKey, ledgerKeyText, readSettledRanges } from "../../warehouse/coverage/ledger.ts";
import { namedKeyText } from "../../warehouse/coverage/ledger-keys.ts";
import { decayLateness, extendSettleDelay, readLateness } from "../../warehouse/coverage/publication.ts";
import { type DueRecheck, readDueRechecks } from "../../warehouse/coverage/rechecks.ts";
import { readGaps, type SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { readSeriesHeads } from "../../warehouse/coverage/series-queries.ts";
import { readConfirmations } from "../../warehouse/read/confirmations.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import { compareUrgency, cutIntoSlices, dropExpired, ROWS_PER_PAGE } from "./slices.ts";
import type { SliceWalk } from "./walk-slice.ts";

/** A recheck fetches this much of the newest covered range again, once a day, to find late corrections. */
export const RECHECK_MICROS = 2 * MICROS_PER_DAY;
const HOUR_MICROS = 3600 * MICROS_PER_SECOND;
/** The first head walk in each hour also fetches this much again, to find records that appeared late. */
const RECENT_MICROS = 2 * HOUR_MICROS;
/** The gap filler, not the head poller, handles a series that lacks more daily bars than this. */
export const HEAD_BARS = 30;

/** Limits which gaps are filled. An absent member means no limit. */
export interface GapFilter {
  readonly streams?: ReadonlySet<string> | undefined;
  /** Ids of indices. */
  readonly indexIds?: ReadonlySet<string> | undefined;
  readonly range?: TimeRange | undefined;
  /** Excludes heads that one page fills, and daily rechecks, because the head poller does both. */
  readonly excludesHeads?: boolean | undefined;
}

/** The walks of one round. */
export interface WalkPlan {
  /** Sorted, the most urgent first. */
  readonly walks: readonly SliceWalk[];
  /** Gaps that have left the service's window. */
  readonly lost: readonly SeriesGaps[];
  /** Keys of the series that these walks also recheck. */
  readonly rechecks: ReadonlySet<string>;
  /** The UTC day for which the rechecks count. */
  readonly day: string;
}

/** The settings that a plan depends on. */
export interface PlanTiming {
  readonly refreshSeconds: number;
  /** A quiet series is covered up to this long before now. */
  readonly quietMargin: Micros;
  /** When the service is asked again about a claim. */
  readonly confirmation: ConfirmationRules;
}

export function planTiming({ refreshSeconds, quietMargin, withdrawals }: SyncSettings): PlanTiming {
  return { refreshSeconds, quietMargin: quietMargin * MICROS_PER_SECOND, confirmation: withdrawals };
}

/** What is open and may be asked for at `now`: a claim that was made just now is asked about later. */
function askable(
  open: TimeRanges,
  claims: readonly PendingClaim[],
  now: Micros,
  rules: ConfirmationRules,
): TimeRanges {
  const waiting = claims.filter((claim) => nextAskAt(claim, rules) > now).map(({ range }) => range);
  return subtract(open, normalise(waiting));
}

function matchesFilter(filter: GapFilter, stream: HistoryStream, indexId: string): boolean {
  return (filter.streams?.has(stream) ?? true) && (filter.indexIds?.has(indexId) ?? true);
}

/** Plans the walks at `now`: every gap, and once a day the range in which late corrections may occur. */
export function planWalks(
  reader: Connection,
  now: Micros,
  settings: PlanTiming,
  filter: GapFilter,
): WalkPlan {
  const walks: SliceWalk[] = [];
  const lost: SeriesGaps[] = [];
  const rechecks = new Set<string>();
  const day = formatDay(now);
  for (const stream of ["index_ticks", "ohlcv"] as const) {
    const timing = streamTiming(reader, stream, now, settings);
    const seriesById = new Map<number, OpenSeries>();
    for (const series of readGaps(reader, stream, now)) {
      if (!matchesFilter(filter, stream, series.indexId)) continue;
      if (series.agedOut.length > 0) lost.push(series);
      const open = askable(series.open, series.claims, now, settings.confirmation);
      if (open.length > 0) seriesById.set(series.key.series, { ...series, open });
    }
    // A range filter would limit a recheck to a part of its range, so skip rechecks.
    const includesRechecks = filter.range === undefined && !filter.excludesHeads;
    for (const due of includesRechecks ? readDueRechecks(reader, stream, day) : []) {
      if (!matchesFilter(filter, stream, due.indexId)) continue;
      rechecks.add(ledgerKeyText(due.key));
      seriesById.set(due.key.series, addRecheck(seriesById.get(due.key.series), due, timing.targetEnd));
    }
    // A series that is fetched once on request has no head poller, so its head is filled here.
    const headSeries = new Set(
      filter.excludesHeads ? readSeriesHeads(reader, stream).map(({ key }) => key.series) : [],
    );
    for (const series of seriesById.values()) {
      const inRange = filter.range ? intersect(series.open, [filter.range]) : series.open;
      const head = headRange(timing);
      const isHead = ({ from, to }: TimeRange) => from >= head.from && to >= head.to;
      const selected = headSeries.has(series.key.series)
        ? inRange.filter((range) => !isHead(range))
        : includesRechecks
          ? addRecentRange(reader, series.key, inRange, timing)
          : inRange;
      walks.push(...toWalks({ ...series, open: selected }, timing));
    }
  }
  return { walks: walks.sort(compareUrgency), lost, rechecks, day };
}

/**
 * Plans the walks at the head of one series: what one page fills, and a recheck if one is due. With `includesRecent` the
 * same page also fetches the last two hours again, without an extra request.
 */
export function planHeadWalks(
  reader: Connection,
  now: Micros,
  settings: PlanTiming,
  { stream, series }: { stream: HistoryStream; series: number },
  includesRecent: boolean,
): WalkPlan {
  const timing = streamTiming(reader, stream, now, settings);
  const day = formatDay(now);
  const [found] = readGaps(reader, stream, now, series);
  const [due] = readDueRechecks(reader, stream, day, series);
  const waiting = found ? askable(found.open, found.claims, now, settings.confirmation) : [];
  const open = intersect(waiting, [headRange(timing)]);
  const head = found && {
    ...found,
    open: includesRecent ? addRecentRange(reader, found.key, open, timing) : open,
  };
  const openSeries = due ? addRecheck(head, due, timing.targetEnd) : head;
  return {
    walks: openSeries ? toWalks(openSeries, timing).sort(compareUrgency) : [],
    lost: [],
    rechecks: new Set(due ? [ledgerKeyText(due.key)] : []),
    day,
  };
}

/**
 * Records may appear late, in a range that is already covered. Adds the recent part of it, as far as one page has room: the
 * look-back at every poll, which grows with the lateness seen, and two hours once per hour.
 */
function addRecentRange(
  reader: Connection,
  key: LedgerKey,
  open: TimeRanges,
  { stream, targetEnd, lookBack, cadence }: StreamTiming,
): TimeRanges {
  const head = open.at(-1);
  if (!head || head.to < targetEnd || streamTable[stream].event === null) return open;
  const hourOf = (ts: Micros) => Math.floor(ts / HOUR_MICROS);
  const reach = hourOf(head.from) === hourOf(targetEnd) ? lookBack : Math.max(lookBack, RECENT_MICROS);
  const from = Math.max(head.from - reach, targetEnd - ROWS_PER_PAGE * cadence);
  if (from >= head.from) return open;
  const covered = readSettledRanges(reader, key).filter((range) => range.proof !== "lost");
  const recent = intersect(normalise(covered), [{ from, to: targetEnd }]);
  // A lost range in between would cause a second walk, so add only the part that is connected to the head.
  const newest = union(open, recent).slice(-1);
  return union(open, newest);
}

/** What the plan of a stream at `now` depends on, besides the ledger. */
interface StreamTiming {
  readonly stream: HistoryStream;
  readonly now: Micros;
  /** End of the target: newer records are not settled yet. */
  readonly targetEnd: Micros;
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  readonly quietMargin: Micros;
  /** How much of the covered range below its head a poll fetches again. */
  readonly lookBack: Micros;
}

/** The look-back while no record is late, in periods. */
const LOOK_BACK_PERIODS = 60;

function streamTiming(
  reader: Connection,
  stream: HistoryStream,
  now: Micros,
  { refreshSeconds, quietMargin }: PlanTiming,
): StreamTiming {
  const delay = settleDelay(refreshSeconds);
  const lateness = readLateness(reader, stream);
  const { step } = streamTable[stream];
  const cadence = cadenceOf(stream, refreshSeconds);
  const extendedDelay = extendSettleDelay({ settleDelay: delay }, lateness, now);
  const lookBack = Math.max(LOOK_BACK_PERIODS * cadence, lateness ? 2 * decayLateness(lateness, now) : 0);
  return {
    stream,
    now,
    targetEnd: computeTargetEnd({ settleDelay: extendedDelay, step }, now),
    cadence,
    settleDelay: delay,
    quietMargin,
    lookBack: Math.min(RECENT_MICROS, lookBack),
  };
}

/** The newest part of a series: what one page holds, or a month of daily bars. */
function headRange({ stream, targetEnd, cadence }: StreamTiming): TimeRange {
  return { from: targetEnd - (isDaily(stream) ? HEAD_BARS : ROWS_PER_PAGE) * cadence, to: targetEnd };
}

function toWalks(
  series: OpenSeries,
  { stream, now, targetEnd, cadence, settleDelay, quietMargin }: StreamTiming,
): SliceWalk[] {
  const windowStart = computeWindowStart(series.serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
  const open = dropExpired(series.open, windowStart);
  return cutIntoSlices({ stream, open, targetEnd, windowStart, cadence }).map((slice) => ({
    ...slice,
    key: { stream, series: series.key.series },
    indexType: series.indexType,
    indexId: series.indexId,
    name: series.name,
    serviceWindow: series.serviceWindow,
    isHead: slice.range.to >= targetEnd,
    period: cadence,
    cadence,
    settleDelay,
    quietMargin,
    knownEnd: findKnownEnd(series.claims),
    blockedReason: series.blockedReason,
  }));
}

/**
 * The record at which the history begins, by an answer that must be repeated. Undefined for a history without records: there
 * the second answer counts further than the first, and one that was cut must not decide alone.
 */
export function findKnownEnd(claims: readonly PendingClaim[]): Micros | undefined {
  return claims.find(({ kind, acceptedAt }) => kind === "end" && acceptedAt === null)?.subject[0];
}

type OpenSeries = Pick<
  SeriesGaps,
  "indexType" | "indexId" | "name" | "open" | "serviceWindow" | "blockedReason" | "claims"
> & { readonly key: LedgerKey };

function addRecheck(series: OpenSeries | undefined, due: DueRecheck, targetEnd: Micros): OpenSeries {
  const from = Math.max(due.targetFrom, targetEnd - RECHECK_MICROS);
  const open = union(series?.open ?? [], from < targetEnd ? [{ from, to: targetEnd }] : []);
  return { ...due, open, blockedReason: series?.blockedReason ?? null, claims: series?.claims ?? [] };
}

/** What the service must repeat about these gaps, and when it is asked. */
export function summarizeClaims(
  reader: Connection,
  gaps: readonly SeriesGaps[],
  rules: ConfirmationRules,
): Confirmations {
  const unconfirmed = gaps.filter((series) => series.unconfirmed.length > 0);
  const keys = unconfirmed.map(({ key: { stream }, indexType, indexId }) =>
    namedKeyText({ stream, index_type: indexType, index_id: indexId }),
  );
  const claimed = unconfirmed.map(({ unconfirmedReason }) => ({ reason: unconfirmedReason }));
  return readConfirmations(reader, claimed, rules, new Set(keys));
}

/** The gaps that are open at `now`. */
export function findOpenGaps(reader: Connection, now: Micros, filter: GapFilter): SeriesGaps[] {
  const { range } = filter;
  const clip = (ranges: TimeRanges) => (range ? intersect(ranges, [range]) : ranges);
  return (["index_ticks", "ohlcv"] as const)
    .flatMap((stream) => readGaps(reader, stream, now))
    .filter(({ key, indexId }) => matchesFilter(filter, key.stream, indexId))
    .map((series) => ({
      ...series,
      open: clip(series.open),
      missing: clip(series.missing),
      unpublished: clip(series.unpublished),
      unconfirmed: clip(series.unconfirmed),
    }))
    .filter(({ open }) => open.length > 0);
}
