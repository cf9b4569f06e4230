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
import { readPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import { decayLateness, extendSettleDelay, readLateness } from "../../warehouse/coverage/publication.ts";
import { type DueRecheck, readDueRechecks } from "../../warehouse/coverage/rechecks.ts";
import { readGaps, type SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { readSeriesHeads, readSeriesLedgers } from "../../warehouse/coverage/series-queries.ts";
import { readRowSpacing } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import { type GapFilter, matchesFilter } from "./run-filter.ts";
import {
  compareUrgency,
  cutIntoSlices,
  cutOnGrid,
  dropExpired,
  gridCadence,
  joinBeforeHistory,
  ROWS_PER_PAGE,
  type Slice,
  type SliceWalk,
  sliceLength,
  type WalkedSeries,
} from "./slices.ts";

/*
 * What the service is asked of histories. Each function below is a source of walks; `toWalks` makes them all.
 * - `planGaps`: what is open, and once a day what may be corrected late; or the head of one series alone
 * - `planEnds`: whether anything is below the end of a history
 * - `planComparison`: all that is covered, and the claims against stored rows
 * - `planNight`: the ends, and a part of what is covered
 */

/** A recheck fetches this much of the newest covered range again, once a day, to find late corrections. */
export const RECHECK_MICROS = 2 * MICROS_PER_DAY;
const HOUR_MICROS = 3600 * MICROS_PER_SECOND;
/** The first head walk in each hour also fetches this much again, to find records that appeared late. */
const RECENT_MICROS = 2 * HOUR_MICROS;
/** The gap filler, not the head poller, handles a series that lacks more daily bars than this. */
export const HEAD_BARS = 30;
/** The look-back while no record is late, in periods. */
const LOOK_BACK_PERIODS = 60;

/** The walks of one round. */
export type WalkPlan = Readonly<ReturnType<typeof planGaps>>;

/** The settings that a plan depends on. */
export type PlanSettings = Pick<SyncSettings, "refreshSeconds" | "quietMargin" | "withdrawals">;

/** What a source reports of a series. What is settled already is at no head, and nothing blocks it. */
type SourcedSeries = Omit<WalkedSeries, keyof KnownLater> & Partial<KnownLater>;
type KnownLater = Pick<WalkedSeries, "period" | "cadence" | "quietMargin" | "knownEnd" | "blockedReason">;

function toWalks(
  { key, indexType, indexId, name, serviceWindow, ...known }: SourcedSeries,
  slices: readonly Slice[],
  period: Micros,
  targetEnd = Number.POSITIVE_INFINITY,
): SliceWalk[] {
  const { settleDelay, quietMargin = 0, cadence = period, knownEnd, blockedReason = null } = known;
  const timing = { period, cadence, settleDelay, quietMargin };
  const series = { key, indexType, indexId, name, serviceWindow, ...timing, knownEnd, blockedReason };
  return slices.map((slice) => ({ ...slice, series, isHead: slice.range.to >= targetEnd }));
}

/** Nothing waits for what is settled already. */
const settledSlices = (stream: HistoryStream, ranges: readonly TimeRange[]): Slice[] =>
  ranges.map((range) => ({ range, urgency: isDaily(stream) ? "bars" : "history" }));

/** What is open and may be asked for at `now`: a claim that was made just now is asked about later. */
function askable({ open, claims }: SeriesGaps, now: Micros, rules: ConfirmationRules): TimeRanges {
  const waiting = claims.filter((claim) => nextAskAt(claim, rules) > now).map(({ range }) => range);
  return subtract(open, normalise(waiting));
}

type OpenSeries = Pick<
  SeriesGaps,
  "indexType" | "indexId" | "name" | "open" | "serviceWindow" | "blockedReason" | "claims"
> & { readonly key: SeriesKey };

/** Every gap at `now`, or those of a filter, and once a day the range in which late corrections may occur. */
export function planGaps(reader: Connection, now: Micros, settings: PlanSettings, filter: GapFilter) {
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
    const { targetEnd, cadence } = timing;
    const found = new Map<number, OpenSeries>();
    for (const series of readGaps(reader, stream, now, only?.key.series)) {
      if (!matchesFilter(filter, stream, series.indexId)) continue;
      if (series.agedOut.length > 0) lost.push(series);
      found.set(series.key.series, { ...series, open: askable(series, now, settings.withdrawals) });
    }
    // A series that is fetched once on request has no head poller, so its head is filled here.
    const polled = heads === "excluded" ? readSeriesHeads(reader, stream) : [];
    const polledSeries = new Set(polled.map(({ key }) => key.series));
    const head = headRange(timing);
    for (const series of found.values()) {
      const { key, open } = series;
      const inRange = range ? intersect(open, [range]) : only ? intersect(open, [head]) : open;
      const isOpenHere = (each: TimeRange) =>
        !polledSeries.has(key.series) || each.from < head.from || each.to < head.to;
      const selected = inRange.filter(isOpenHere);
      const withRecent = includesRecent ? addRecentRange(reader, key, selected, timing) : selected;
      found.set(key.series, { ...series, open: withRecent });
    }
    for (const due of includesRechecks ? readDueRechecks(reader, stream, day, only?.key.series) : []) {
      if (!matchesFilter(filter, stream, due.indexId)) continue;
      const key = { stream, series: due.key.series };
      rechecks.add(ledgerKeyText(key));
      found.set(key.series, { ...addRecheck(found.get(key.series), due, targetEnd), key });
    }
    for (const series of found.values()) {
      const windowStart = fetchableFrom(series.serviceWindow, now);
      const open = dropExpired(series.open, windowStart);
      const slices = cutIntoSlices({ stream, open, targetEnd, windowStart, cadence });
      const { settleDelay, quietMargin } = timing;
      const known = { settleDelay, quietMargin, knownEnd: findKnownEnd(series.claims) };
      walks.push(...toWalks({ ...series, ...known }, slices, cadence, targetEnd));
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
  { refreshSeconds, quietMargin }: PlanSettings,
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

function addRecheck(
  series: OpenSeries | undefined,
  due: DueRecheck,
  targetEnd: Micros,
): Omit<OpenSeries, "key"> {
  const from = Math.max(due.targetFrom, targetEnd - RECHECK_MICROS);
  const open = union(series?.open ?? [], from < targetEnd ? [{ from, to: targetEnd }] : []);
  return { ...due, open, blockedReason: series?.blockedReason ?? null, claims: series?.claims ?? [] };
}

/** The settled end of every history at `now`. An end that was found just now is a pending claim instead. */
export function planEnds(reader: Connection, refreshSeconds: number, now: Micros): SliceWalk[] {
  return historyStreams.flatMap((stream) =>
    readSeriesLedgers(reader, stream).flatMap(({ end, ...series }) => {
      const served = dropExpired(end ? [end] : [], fetchableFrom(series.serviceWindow, now));
      return toWalks(series, settledSlices(stream, served), cadenceOf(stream, refreshSeconds));
    }),
  );
}

interface ComparisonOptions {
  /** Also what precedes a history. */
  readonly includesEnds: boolean;
  /** Also the ranges of these claims. */
  readonly includesClaim: (claim: PendingClaim) => boolean;
}

/** Everything that is covered and still served, in slices of one walk each. `isClaimed`: the service makes a claim about a part. */
export function planComparison(
  reader: Connection,
  refreshSeconds: number,
  now: Micros,
  { includesEnds, includesClaim }: ComparisonOptions,
): (SliceWalk & { readonly isClaimed: boolean })[] {
  return historyStreams.flatMap((stream) => {
    const pending = readPendingClaims(reader, stream);
    const period = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: period };
    const newestSettled = computeTargetEnd(rules, now) - 2 * period;
    return readSeriesLedgers(reader, stream).flatMap((series) => {
      const { covered, beforeHistory: settledEnds, key, serviceWindow } = series;
      const claims = (pending.get(key.series) ?? []).filter(includesClaim);
      const claimed = claims.map(({ range }) => range);
      const ends = claims.filter(({ kind }) => kind === "end").map(({ range }) => range);
      const beforeHistory = normalise([...settledEnds, ...ends]);
      const compared = subtract(normalise(covered), [{ from: newestSettled, to: Number.POSITIVE_INFINITY }]);
      const open = subtract(
        dropExpired(normalise([...compared, ...claimed]), fetchableFrom(serviceWindow, now)),
        includesEnds ? [] : beforeHistory,
      );
      const cadence = gridCadence(period, readRowSpacing(reader, key));
      // A fixed grid gives the same pieces every night, so the nightly rotation reaches all of them.
      const pieces = isDaily(stream)
        ? open
        : joinBeforeHistory(
            cutOnGrid(subtract(open, beforeHistory), cadence),
            intersect(open, beforeHistory),
          );
      const slices = settledSlices(stream, pieces.toReversed());
      const isClaimed = ({ range }: Slice) =>
        claimed.some(({ from, to }) => from < range.to && range.from < to);
      return toWalks({ ...series, cadence }, slices, period).map((walk) => ({
        ...walk,
        isClaimed: isClaimed(walk),
      }));
    });
  });
}

/** What to ask once more in the night of `now`: below each end of a history, and a part of what is covered. */
export function planNight(reader: Connection, refreshSeconds: number, now: Micros) {
  const options = { includesEnds: false, includesClaim: () => false };
  const covered = planComparison(reader, refreshSeconds, now, options);
  return {
    ends: planEnds(reader, refreshSeconds, now),
    slices: selectDueTonight(covered, now),
    /** All covered ranges are compared in so many nights. */
    nights: rotationLength(covered.length),
  };
}

/** Each divides the next, so that a growing warehouse changes the night of a slice as little as possible. */
const ROTATION_NIGHTS = [1, 3, 15, 30];
/** Bounds the work of one night: few slices are compared more often, many are spread over more nights. */
const SLICES_PER_NIGHT = { min: 20, max: 500 };

/** The number of nights in which all slices are compared: 30, unless there are very few or very many. */
export function rotationLength(sliceCount: number): number {
  let nights = ROTATION_NIGHTS.findLast((turn) => sliceCount / turn >= SLICES_PER_NIGHT.min) ?? 1;
  while (sliceCount / nights > SLICES_PER_NIGHT.max) nights *= 2;
  return nights;
}

/**
 * Selects the slices to compare in the night of `now`. The night of a slice follows from its series and range, so no state
 * is stored and every slice is compared once per rotation.
 */
export function selectDueTonight(slices: readonly SliceWalk[], now: Micros): readonly SliceWalk[] {
  const nights = rotationLength(slices.length);
  const tonight = Math.floor(now / MICROS_PER_DAY) % nights;
  return slices.filter((slice) => nightOfSlice(slice, nights) === tonight);
}

/** A prime, which spreads neighbouring series (an ohlcv series has a single slice) over the nights of a rotation. */
const SERIES_STRIDE = 7919;

function nightOfSlice({ series: { key, cadence }, range }: SliceWalk, nights: number): number {
  // A range before the history of a series moves with the service's window.
  const isCell = !isDaily(key.stream) && range.to - range.from <= sliceLength(cadence);
  const cellIndex = isCell ? Math.floor(range.from / sliceLength(cadence)) : 0;
  return (key.series * SERIES_STRIDE + cellIndex) % nights;
}
