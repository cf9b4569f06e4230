import { Failure, failureCode } from "../../model/failure.ts";
import { cadenceOf, historyStreams, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { normalise, subtract } from "../../model/time-range.ts";
import type { Random } from "../../runtime/backoff.ts";
import { computeTargetEnd, computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { readUnconfirmedRanges } from "../../warehouse/coverage/mass-withdrawals.ts";
import { wasNotFound } from "../../warehouse/coverage/not-found.ts";
import { readSeriesCoverage } from "../../warehouse/coverage/series-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ensureServiceTime, type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, type Problem, toProblem } from "../context/error-policy.ts";
import { retryUntilDone, runConcurrently } from "../context/retry.ts";
import { settleDelay } from "../selection/targets.ts";
import { cutIntoSlices, cutOnGrid, dropExpired, gridIndex } from "./slices.ts";
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

export interface VerifyResult {
  readonly sliceCount: number;
  readonly rows: number;
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
  const selected = new Set([...sampled, ...allSlices.filter(({ isDoubted }) => isDoubted)]);
  const retryOptions = { clock, random, signal, successCount: () => stats.successCount };
  const differences: SliceDifference[] = [];
  const problems: Problem[] = [];
  let rows = 0;
  await runConcurrently([...selected], Math.ceil(concurrency * 1.5), async (walk) => {
    try {
      const result = await retryUntilDone(retryOptions, () => walkSlice(context, walk));
      rows += result.received;
      const { missing, changed, withdrawn, unconfirmed, hasReopened } = result;
      if (missing + changed + withdrawn + unconfirmed === 0 && !hasReopened) return;
      const { key, name, indexType, range } = walk;
      differences.push({ stream: key.stream, name, indexType, ...range, ...result });
      if (unconfirmed > 0)
        problems.push(toProblem(key.stream, `${indexType} ${name}`, unconfirmedFailure(walk, unconfirmed)));
    } catch (error) {
      const errorClass = classifyError(error, stats.successCount);
      if (errorClass === "stop") throw error;
      // The service does not have the index, so there is nothing to compare.
      const isRefused = failureCode(error) === "rejected" && wasNotFound(options.reader, walk.key);
      if (errorClass === "not_found" || isRefused) return;
      problems.push(toProblem(walk.key.stream, `${walk.indexType} ${walk.name}`, error));
      // The service contradicts covered ranges: retract them, so that the gap filler fetches them again.
      if (error instanceof Failure && error.code === "alarm") {
        await context.ingest.call("commitRetraction", { key: walk.key, range: walk.range }, [], signal);
      }
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  return { sliceCount: selected.size, rows, differences, problems };
}

/** Everything that is covered or in doubt, and still served, in slices of one walk each. */
function coveredSlices(
  { reader, refreshSeconds, acceptsWithdrawals = false }: VerifyOptions,
  now: Micros,
): (SliceWalk & { readonly isDoubted: boolean })[] {
  return historyStreams.flatMap((stream) => {
    const doubtedRanges = readUnconfirmedRanges(reader, stream);
    const cadence = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: cadence };
    const newestSettled = computeTargetEnd(rules, now) - 2 * cadence;
    return readSeriesCoverage(reader, stream).flatMap(({ covered, key, serviceWindow, ...named }) => {
      const windowStart = computeWindowStart(serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
      const doubted = doubtedRanges.get(key.series) ?? [];
      const open = subtract(dropExpired(normalise([...covered, ...doubted]), windowStart), [
        { from: newestSettled, to: Number.POSITIVE_INFINITY },
      ]);
      // A fixed grid gives the same pieces every night, so the nightly rotation reaches all of them.
      const pieces = isDaily(stream) ? open : cutOnGrid(open, cadence);
      const slices = cutIntoSlices({
        stream,
        open: pieces,
        targetEnd: Number.POSITIVE_INFINITY,
        windowStart,
        cadence,
      });
      return slices.map((slice) => ({
        ...slice,
        ...named,
        key,
        serviceWindow,
        isHead: false,
        quietMargin: 0,
        isComparison: true,
        isDoubted: doubted.some(({ from, to }) => from < slice.range.to && slice.range.from < to),
        acceptsWithdrawals,
        cadence,
        blockedReason: null,
      }));
    });
  });
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
  const cellIndex = isDaily(key.stream) ? 0 : gridIndex(range, cadence);
  return (key.series * SERIES_STRIDE + cellIndex) % nights;
}
