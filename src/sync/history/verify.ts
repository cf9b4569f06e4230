import { Failure, failureCode } from "../../model/failure.ts";
import { cadenceOf, historyStreams, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Random } from "../../runtime/backoff.ts";
import { computeTargetEnd, computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { readUnconfirmedRanges } from "../../warehouse/coverage/mass-withdrawals.ts";
import { wasNotFound } from "../../warehouse/coverage/not-found.ts";
import { readSeriesCoverage } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows, findOldestRow, readRowSpacing } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ensureServiceTime, type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, type Problem, toProblem } from "../context/error-policy.ts";
import { retryUntilDone } from "../context/retry.ts";
import { settleDelay } from "../selection/targets.ts";
import { cutOnGrid, dropExpired, gridCadence, gridIndex, sliceLength } from "./slices.ts";
import { drainQueue, WalkQueue } from "./walk-queue.ts";
import {
  type SliceResult,
  type SliceWalk,
  unconfirmedFailure,
  WINDOW_EDGE_MARGIN_MICROS,
  walkSlice,
} from "./walk-slice.ts";

interface VerifyOptions {
  readonly reader: Connection;
  readonly random: Random;
  readonly refreshSeconds: number;
  readonly concurrency: number;
  /** How many slices to compare, picked at random, or a function that selects them; undefined: all. */
  readonly sample: number | ((slices: readonly SliceWalk[]) => readonly SliceWalk[]) | undefined;
  /** Believe at once that the service no longer has many rows. */
  readonly acceptsWithdrawals?: boolean;
}

/** A slice that differed from the service; the walk has repaired it, except for unconfirmed withdrawals. */
export interface SliceDifference extends SliceResult {
  readonly stream: string;
  readonly name: string;
  readonly indexType: string;
  readonly from: Micros;
  readonly to: Micros;
}

/** Rows of a series that are older than everything that the service still serves: they stay. */
export interface UnservedRows {
  readonly stream: string;
  readonly name: string;
  readonly indexType: string;
  readonly before: Micros;
  readonly rows: number;
}

export interface VerifyResult {
  readonly sliceCount: number;
  readonly rows: number;
  /** Rows with the same figures, but other undocumented properties: no difference. */
  readonly extraChanged: number;
  readonly unserved: readonly UnservedRows[];
  readonly differences: readonly SliceDifference[];
  readonly problems: readonly Problem[];
}

/**
 * Walks covered ranges again. A page is authoritative for its proven range, so its commit also repairs what differs; the
 * previous values go to `revisions`.
 */
export async function verify(context: SyncContext, options: VerifyOptions): Promise<VerifyResult> {
  const { random, sample, concurrency } = options;
  const { clock, signal, stats } = context;
  // The start of the window depends on the service's time.
  await ensureServiceTime(context, random);
  const allSlices = coveredSlices(options, serviceNow(context));
  const sampled =
    typeof sample === "function"
      ? sample(allSlices)
      : sample === undefined
        ? allSlices
        : pickRandom(allSlices, sample, random);
  // A difference that stands is reported every time.
  const selected = new Set([...sampled, ...allSlices.filter(({ isUnconfirmed }) => isUnconfirmed)]);
  const retryOptions = { clock, random, signal, successCount: () => stats.successCount };
  const differences: SliceDifference[] = [];
  const problems: Problem[] = [];
  const historyEnds = new Map<string, { readonly walk: SliceWalk; readonly before: Micros }>();
  let rows = 0;
  let extraChanged = 0;
  const findRow = ({ key }: SliceWalk) => findOldestRow(options.reader, key);
  const queue = new WalkQueue({ walks: [...selected], rank: () => 0, findOldestRow: findRow });
  await drainQueue(queue, Math.ceil(concurrency * 1.5), async (active) => {
    const { walk, spacing } = active;
    const { key, name, indexType, range } = walk;
    try {
      const walkOptions = { progress: active, spacing };
      const result = await retryUntilDone(retryOptions, () => walkSlice(context, walk, walkOptions));
      queue.finish(active, { kind: result.isUnexplored ? "empty" : "filled", ...result });
      rows += result.received;
      extraChanged += result.extraChanged;
      const { endsAt: before = 0 } = result;
      if (before > (historyEnds.get(ledgerKeyText(key))?.before ?? 0))
        historyEnds.set(ledgerKeyText(key), { walk, before });
      if (!result.differing) return;
      differences.push({ stream: key.stream, name, indexType, ...result.differing, ...result });
      if (result.unconfirmed > 0)
        problems.push(
          toProblem(key.stream, `${indexType} ${name}`, unconfirmedFailure(walk, result.unconfirmed)),
        );
    } catch (error) {
      const errorClass = classifyError(error, stats.successCount);
      if (errorClass === "stop") throw error;
      const { from, position } = active;
      // The service does not have the index, so there is nothing to compare.
      const isRefused = failureCode(error) === "rejected" && wasNotFound(options.reader, key);
      const isNotFound = errorClass === "not_found" || isRefused;
      queue.finish(active, { kind: isNotFound ? "not_found" : "failed" });
      if (isNotFound) return;
      problems.push(toProblem(key.stream, `${indexType} ${name}`, error));
      // The service contradicts covered ranges: retract them, so that the gap filler fetches them again.
      if (error instanceof Failure && error.code === "alarm") {
        const length = sliceLength(walk.cadence);
        const near = { from: Math.max(from, position - length), to: Math.min(range.to, position + length) };
        await context.ingest.call("commitRetraction", { key, range: near }, [], signal);
      }
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  const unserved = [...historyEnds.values()].map(
    ({ walk: { key, name, indexType, serviceWindow }, before }) => {
      const from = computeWindowStart(serviceWindow, serviceNow(context));
      const count = countStoredRows(options.reader, key, { from, to: before });
      return { stream: key.stream, name, indexType, before, rows: count };
    },
  );
  return { sliceCount: selected.size, rows, extraChanged, unserved, differences, problems };
}

/** Everything that is covered or unconfirmed, and still served, in slices of one walk each. */
function coveredSlices(
  { reader, refreshSeconds, acceptsWithdrawals = false }: VerifyOptions,
  now: Micros,
): (SliceWalk & { readonly isUnconfirmed: boolean })[] {
  return historyStreams.flatMap((stream) => {
    const unconfirmedRanges = readUnconfirmedRanges(reader, stream);
    const cadence = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: cadence };
    const newestSettled = computeTargetEnd(rules, now) - 2 * cadence;
    return readSeriesCoverage(reader, stream).flatMap((series) => {
      const { covered, beforeHistory, key, serviceWindow, ...named } = series;
      const windowStart = computeWindowStart(serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
      const unconfirmed = unconfirmedRanges.get(key.series) ?? [];
      const open = subtract(dropExpired(normalise([...covered, ...unconfirmed]), windowStart), [
        { from: newestSettled, to: Number.POSITIVE_INFINITY },
      ]);
      const grid = gridCadence(cadence, readRowSpacing(reader, key));
      // A fixed grid gives the same pieces every night, so the nightly rotation reaches all of them.
      const pieces = isDaily(stream)
        ? open
        : joinBeforeHistory(cutOnGrid(subtract(open, beforeHistory), grid), intersect(open, beforeHistory));
      return pieces.toReversed().map((range) => ({
        ...named,
        range,
        urgency: isDaily(stream) ? ("bars" as const) : ("history" as const),
        key,
        serviceWindow,
        isHead: false,
        quietMargin: 0,
        isComparison: true,
        isUnconfirmed: unconfirmed.some(({ from, to }) => from < range.to && range.from < to),
        acceptsWithdrawals,
        cadence: grid,
        blockedReason: null,
      }));
    });
  });
}

/** What precedes a history is not cut: the walk over the oldest rows confirms all of it with one request. */
function joinBeforeHistory(pieces: readonly TimeRange[], beforeHistory: TimeRanges): TimeRange[] {
  const [joined, alone] = [new Map<Micros, TimeRange>(), [] as TimeRange[]];
  for (const range of beforeHistory)
    if (pieces.some(({ from }) => from === range.to)) joined.set(range.to, range);
    else alone.push(range);
  const extended = pieces.map(({ from, to }) => ({ from: joined.get(from)?.from ?? from, to }));
  return [...alone, ...extended].sort((a, b) => a.from - b.from);
}

function pickRandom<T>(items: readonly T[], count: number, random: Random): T[] {
  const remaining = [...items];
  const picked: T[] = [];
  while (picked.length < count && remaining.length > 0) {
    const at = Math.floor(random() * remaining.length);
    picked.push(...remaining.splice(at, 1));
  }
  return picked;
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

function nightOfSlice({ key, range, cadence }: SliceWalk, nights: number): number {
  // A range before the history of a series moves with the service's window.
  const isCell = !isDaily(key.stream) && range.to - range.from <= sliceLength(cadence);
  const cellIndex = isCell ? gridIndex(range, cadence) : 0;
  return (key.series * SERIES_STRIDE + cellIndex) % nights;
}
