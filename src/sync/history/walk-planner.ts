import type { SeriesTiming } from "../../ingest/commit/stored-series.ts";
import {
  cadenceOf,
  computeTargetEnd,
  fetchableFrom,
  type HistoryStream,
  historyStreams,
  isDaily,
  settleDelay,
  streamTable,
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
import type { PendingClaim } from "../../rule/answer.ts";
import { type ConfirmationRules, nextAskAt } from "../../rule/confirm.ts";
import { ledgerKeyText, readSettledRanges, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { decayLateness, extendSettleDelay, readLateness } from "../../warehouse/coverage/publication.ts";
import { readDueRechecks } from "../../warehouse/coverage/rechecks.ts";
import { readGaps, type SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { readSeriesHeads } from "../../warehouse/coverage/series-queries.ts";
import type { SeriesNames } from "../../warehouse/schema/lookups.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import type { RunStats } from "../context/run-stats.ts";

/** New rows of a full page: of 2000 rows, a cursor may repeat one, and one must lie below the range. */
export const ROWS_PER_PAGE = 1998;
const PAGES_PER_SLICE = 4;

/** Ranges that leave the service's window within this time are filled directly after the head. */
const AT_RISK_MICROS = 2 * MICROS_PER_DAY;

/** A recheck fetches this much of the newest covered range again, once a day, to find late corrections. */
export const RECHECK_MICROS = 2 * MICROS_PER_DAY;
const HOUR_MICROS = 3600 * MICROS_PER_SECOND;
/** The first head walk in each hour also fetches this much again, to find records that appeared late. */
const RECENT_MICROS = 2 * HOUR_MICROS;
/** The gap filler, not the head poller, handles a series that lacks more daily bars than this. */
export const HEAD_BARS = 30;
/** The look-back while no record is late, in periods. */
const LOOK_BACK_PERIODS = 60;

/** Sorted: the most urgent kind of slice is filled first. */
export const urgencies = ["head", "expiring", "bars", "history"] as const;

/** A part of a gap with one urgency. */
export interface Slice {
  readonly range: TimeRange;
  readonly urgency: (typeof urgencies)[number];
}

/** A series of which a walk fetches a part. */
export interface WalkedSeries extends SeriesTiming {
  readonly key: SeriesKey;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** The `period` of the settings as far as the rows of the series have shown it. */
  readonly cadence: Micros;
  /** The record at which the history begins, by an unconfirmed answer. */
  readonly knownEnd: Micros | undefined;
  /** Why earlier runs could not fill the series; null: nothing blocked them. */
  readonly blockedReason: string | null;
}

export interface SliceWalk extends Slice {
  readonly series: WalkedSeries;
  /** The range reaches the end of the target: newer records are fetched too, but not covered. */
  readonly isHead: boolean;
}

/**
 * Cuts the gaps of one series by urgency, newest first: the head, what expires soon, and the rest. Idle workers split
 * long slices further (see WalkQueue). Daily bars are not cut: their whole history is a few pages.
 */
export function cutIntoSlices(
  { stream, targetEnd, cadence }: Pick<StreamTiming, "stream" | "targetEnd" | "cadence">,
  open: TimeRanges,
  windowStart: Micros,
): Slice[] {
  if (isDaily(stream)) return open.toReversed().map((range) => ({ range, urgency: "bars" }));
  const length = sliceLength(cadence);
  return open.toReversed().flatMap((range): Slice[] => {
    const headFrom = range.to >= targetEnd ? Math.max(range.from, range.to - length) : range.to;
    const safeFrom = Math.min(headFrom, Math.max(range.from, windowStart + AT_RISK_MICROS));
    const slices: Slice[] = [
      { range: { from: headFrom, to: range.to }, urgency: "head" },
      { range: { from: safeFrom, to: headFrom }, urgency: "history" },
      { range: { from: range.from, to: safeFrom }, urgency: "expiring" },
    ];
    return slices.filter(({ range: { from, to } }) => from < to);
  });
}

/** The duration of a slice of full pages: the longest head, and what `verify` compares at a time. */
export const sliceLength = (cadence: Micros) => PAGES_PER_SLICE * ROWS_PER_PAGE * cadence;

/** Compares slices of any series for sorting, the most urgent first. */
export function compareUrgency(a: Slice, b: Slice): number {
  const rank = urgencies.indexOf(a.urgency) - urgencies.indexOf(b.urgency);
  if (rank !== 0) return rank;
  // Of the expiring slices the oldest comes first, because it expires first. Otherwise the newest comes first.
  return a.urgency === "expiring" ? a.range.from - b.range.from : b.range.to - a.range.to;
}

/** The minimum number of pages of a walk over the range. */
export function countPages(range: TimeRange, cadence: Micros): number {
  return Math.max(1, Math.ceil((range.to - range.from) / cadence / ROWS_PER_PAGE));
}

/** The progress of a run counts what its walks are to do. */
export function addPlanned(stats: RunStats, { series: { key, cadence }, range }: SliceWalk): void {
  const counts = stats.forStream(key.stream);
  counts.plannedRequests += countPages(range, cadence);
  counts.plannedMicros += range.to - range.from;
}

/** Limits which gaps are filled. `includesRecent`: also the last two hours, which the same page fetches again. An absent member means no limit. */
export interface GapFilter {
  readonly streams?: ReadonlySet<string> | undefined;
  readonly indexIds?: ReadonlySet<string> | undefined;
  readonly range?: TimeRange | undefined;
  /** `excluded`: no head that one page fills, and no daily recheck: the head poller does both, one series at a time. */
  readonly heads?: "excluded" | { readonly key: SeriesKey; readonly includesRecent: boolean } | undefined;
}

export function matchesFilter(filter: GapFilter, stream: HistoryStream, indexId: string): boolean {
  return (filter.streams?.has(stream) ?? true) && (filter.indexIds?.has(indexId) ?? true);
}

/** The gaps that are open at `now`. */
export function findOpenGaps(reader: Connection, now: Micros, filter: GapFilter): SeriesGaps[] {
  const { range } = filter;
  const clip = (ranges: TimeRanges) => (range ? intersect(ranges, [range]) : ranges);
  return historyStreams
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

export type WalkPlan = Readonly<ReturnType<typeof planGaps>>;

/** What is settled already is at no head, and nothing blocks it. */
const settledDefaults = { quietMargin: 0, knownEnd: undefined, blockedReason: null };

export function toWalks(
  source: Omit<WalkedSeries, keyof typeof settledDefaults> & Partial<WalkedSeries>,
  slices: readonly Slice[],
  targetEnd = Number.POSITIVE_INFINITY,
): SliceWalk[] {
  const series = { ...settledDefaults, ...source };
  return slices.map((slice) => ({ ...slice, series, isHead: slice.range.to >= targetEnd }));
}

/** What is open and may be asked for at `now`: a claim that was made just now is asked about later. */
function askable({ open, claims }: SeriesGaps, now: Micros, rules: ConfirmationRules): TimeRanges {
  const waiting = claims.filter((claim) => nextAskAt(claim, rules) > now).map(({ range }) => range);
  return subtract(open, normalise(waiting));
}

type OpenSeries = SeriesNames &
  Pick<SeriesGaps, "key" | "open" | "serviceWindow" | "blockedReason" | "claims">;

/** Every gap at `now`, or those of a filter, and once a day the range in which late corrections may occur. */
export function planGaps(reader: Connection, now: Micros, settings: SyncSettings, filter: GapFilter) {
  const { range, heads } = filter;
  const only = typeof heads === "object" ? heads : undefined;
  const walks: SliceWalk[] = [];
  /** Gaps that have left the service's window. */
  const lost: SeriesGaps[] = [];
  /** Keys of the series that these walks also recheck, on this UTC day. */
  const rechecks = new Set<string>();
  const day = formatDay(now);
  // A range filter would limit a recheck to a part of its range, so skip rechecks.
  const includesRechecks = range === undefined && heads !== "excluded";
  const includesRecent = only?.includesRecent ?? includesRechecks;
  for (const stream of only ? [only.key.stream] : historyStreams) {
    const timing = streamTiming(reader, stream, now, settings);
    const { targetEnd, cadence, settleDelay, quietMargin } = timing;
    const head = headRange(timing);
    const isSelected = ({ indexId }: SeriesNames) => matchesFilter(filter, stream, indexId);
    // A series that is fetched once on request has no head poller, so its head is filled here.
    const polled = heads === "excluded" ? readSeriesHeads(reader, stream) : [];
    const polledSeries = new Set(polled.map(({ key }) => key.series));
    const found = new Map<number, OpenSeries>();
    for (const series of readGaps(reader, stream, now, only?.key.series).filter(isSelected)) {
      if (series.agedOut.length > 0) lost.push(series);
      const { key } = series;
      const open = askable(series, now, settings.withdrawals);
      const inRange = range ? intersect(open, [range]) : only ? intersect(open, [head]) : open;
      const isOpenHere = (each: TimeRange) =>
        !polledSeries.has(key.series) || each.from < head.from || each.to < head.to;
      const selected = inRange.filter(isOpenHere);
      const withRecent = includesRecent ? addRecentRange(reader, key, selected, timing) : selected;
      found.set(key.series, { ...series, open: withRecent });
    }
    const dueRechecks = includesRechecks ? readDueRechecks(reader, stream, day, only?.key.series) : [];
    for (const due of dueRechecks.filter(isSelected)) {
      const key = { stream, series: due.key.series };
      rechecks.add(ledgerKeyText(key));
      const { open = [], blockedReason = null, claims = [] } = found.get(key.series) ?? {};
      const recheck = { from: Math.max(due.targetFrom, targetEnd - RECHECK_MICROS), to: targetEnd };
      found.set(key.series, { ...due, key, open: normalise([...open, recheck]), blockedReason, claims });
    }
    for (const series of found.values()) {
      const windowStart = fetchableFrom(series.serviceWindow, now);
      const open = dropExpired(series.open, windowStart);
      const slices = cutIntoSlices(timing, open, windowStart);
      const knownEnd = findKnownEnd(series.claims);
      const known = { period: cadence, cadence, settleDelay, quietMargin, knownEnd };
      walks.push(...toWalks({ ...series, ...known }, slices, targetEnd));
    }
  }
  return { walks: walks.sort(compareUrgency), lost, rechecks, day };
}

/**
 * Records may appear late, in a range that is already covered. Adds the recent part of it, as far as one page has room: the
 * look-back at every poll, which grows with the lateness seen, and two hours once per hour.
 */
function addRecentRange(
  reader: Connection,
  key: SeriesKey,
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

type StreamTiming = ReturnType<typeof streamTiming>;

/** What the plan of a stream at `now` depends on, besides the ledger. */
function streamTiming(
  reader: Connection,
  stream: HistoryStream,
  now: Micros,
  { refreshSeconds, quietMargin }: SyncSettings,
) {
  const delay = settleDelay(refreshSeconds);
  const lateness = readLateness(reader, stream);
  const { step } = streamTable[stream];
  const cadence = cadenceOf(stream, refreshSeconds);
  const extendedDelay = extendSettleDelay({ settleDelay: delay }, lateness, now);
  const lookBack = Math.max(LOOK_BACK_PERIODS * cadence, lateness ? 2 * decayLateness(lateness, now) : 0);
  return {
    stream,
    /** End of the target: newer records are not settled yet. */
    targetEnd: computeTargetEnd({ settleDelay: extendedDelay, step }, now),
    cadence,
    settleDelay: delay,
    quietMargin: quietMargin * MICROS_PER_SECOND,
    /** How much of the covered range below its head a poll fetches again. */
    lookBack: Math.min(RECENT_MICROS, lookBack),
  };
}

/** The newest part of a series: what one page holds, or a month of daily bars. */
function headRange({ stream, targetEnd, cadence }: StreamTiming): TimeRange {
  return { from: targetEnd - (isDaily(stream) ? HEAD_BARS : ROWS_PER_PAGE) * cadence, to: targetEnd };
}

/**
 * The record at which the history begins, by an answer that must be repeated. Undefined for a history without records: there
 * the second answer counts further than the first, and one that was cut must not decide alone.
 */
export function findKnownEnd(claims: readonly PendingClaim[]): Micros | undefined {
  return claims.find(({ kind, acceptedAt }) => kind === "end" && acceptedAt === null)?.subject[0];
}

/** Removes what lies before `windowStart`: the service may drop it before the response arrives. */
export function dropExpired(open: TimeRanges, windowStart: Micros): TimeRanges {
  return intersect(open, [{ from: windowStart, to: Number.POSITIVE_INFINITY }]);
}
