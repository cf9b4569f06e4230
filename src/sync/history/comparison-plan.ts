import {
  cadenceOf,
  computeTargetEnd,
  fetchableFrom,
  type HistoryStream,
  historyStreams,
  isDaily,
  settleDelay,
} from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { PendingClaim } from "../../rule/answer.ts";
import { readPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import { readSeriesLedgers } from "../../warehouse/coverage/series-queries.ts";
import { readRowSpacing } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { dropExpired, type Slice, type SliceWalk, sliceLength, toWalks } from "./walk-planner.ts";

/*
 * What the service is asked once more of histories that are settled: by `verify`, and each night.
 */

/** Nothing waits for what is settled already. */
const settledSlices = (stream: HistoryStream, ranges: readonly TimeRange[]): Slice[] =>
  ranges.map((range) => ({ range, urgency: isDaily(stream) ? "bars" : "history" }));

/** The settled end of every history at `now`. An end that was found just now is a pending claim instead. */
export function planEnds(reader: Connection, refreshSeconds: number, now: Micros): SliceWalk[] {
  return historyStreams.flatMap((stream) => {
    const period = cadenceOf(stream, refreshSeconds);
    return readSeriesLedgers(reader, stream).flatMap(({ end, ...series }) => {
      const served = dropExpired(end ? [end] : [], fetchableFrom(series.serviceWindow, now));
      return toWalks({ ...series, period, cadence: period }, settledSlices(stream, served));
    });
  });
}

/**
 * Everything that is covered and still served, in slices of one walk each. `isClaimed`: the service makes a claim about a part.
 * `includesClaim`: also what precedes a history, and the ranges of these claims.
 */
export function planComparison(
  reader: Connection,
  refreshSeconds: number,
  now: Micros,
  includesClaim?: (claim: PendingClaim) => boolean,
): (SliceWalk & { readonly isClaimed: boolean })[] {
  return historyStreams.flatMap((stream) => {
    const pending = readPendingClaims(reader, stream);
    const period = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: period };
    const newestSettled = computeTargetEnd(rules, now) - 2 * period;
    return readSeriesLedgers(reader, stream).flatMap((series) => {
      const { covered, beforeHistory: settledEnds, key, serviceWindow } = series;
      const claims = includesClaim ? (pending.get(key.series) ?? []).filter(includesClaim) : [];
      const claimed = claims.map(({ range }) => range);
      const ends = claims.filter(({ kind }) => kind === "end").map(({ range }) => range);
      const beforeHistory = normalise([...settledEnds, ...ends]);
      const compared = subtract(normalise(covered), [{ from: newestSettled, to: Number.POSITIVE_INFINITY }]);
      const open = subtract(
        dropExpired(normalise([...compared, ...claimed]), fetchableFrom(serviceWindow, now)),
        includesClaim ? [] : beforeHistory,
      );
      const cadence = gridCadence(period, readRowSpacing(reader, key));
      // A fixed grid gives the same pieces every night, so the nightly rotation reaches all of them. What precedes the history is not
      // cut: the walk over the oldest rows confirms all of it with one request.
      const pieces = isDaily(stream)
        ? open
        : [...intersect(open, beforeHistory), ...cutOnGrid(subtract(open, beforeHistory), cadence)];
      const slices = settledSlices(stream, pieces.toReversed());
      const isClaimed = ({ range }: Slice) =>
        claimed.some(({ from, to }) => from < range.to && range.from < to);
      return toWalks({ ...series, period, cadence }, slices).map((walk) => ({
        ...walk,
        isClaimed: isClaimed(walk),
      }));
    });
  });
}

/** What to ask once more in the night of `now`: below each end of a history, and a part of what is covered. */
export function planNight(reader: Connection, refreshSeconds: number, now: Micros) {
  const covered = planComparison(reader, refreshSeconds, now);
  return {
    ends: planEnds(reader, refreshSeconds, now),
    slices: selectDueTonight(covered, now),
    /** All covered ranges are compared in so many nights. */
    nights: rotationLength(covered.length),
  };
}

/** The steps in which the grid of a series follows its spacing, so that it rarely changes. */
const GRID_STEP = 1.04;

/** The cadence on which the grid of a series is based: of a sparse series, a slice is longer. */
export function gridCadence(cadence: Micros, spacing: Micros | undefined): Micros {
  const steps = Math.floor(Math.log((spacing ?? cadence) / cadence) / Math.log(GRID_STEP));
  return Math.round(cadence * GRID_STEP ** Math.max(0, steps));
}

/** Cuts ranges on a fixed grid that starts in 1970, so that a timestamp always falls into the same piece. */
export function cutOnGrid(ranges: TimeRanges, cadence: Micros): TimeRange[] {
  const length = sliceLength(cadence);
  return ranges.flatMap((range) => {
    const pieces: TimeRange[] = [];
    for (let from = range.from; from < range.to; ) {
      const to = Math.min(range.to, (Math.floor(from / length) + 1) * length);
      pieces.push({ from, to });
      from = to;
    }
    return pieces;
  });
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
  const cellIndex = isDaily(key.stream) ? 0 : Math.floor(range.from / sliceLength(cadence));
  return (key.series * SERIES_STRIDE + cellIndex) % nights;
}
