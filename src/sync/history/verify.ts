import { Failure } from "../../model/failure.ts";
import { cadenceOf, historyStreams, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { normalise, subtract } from "../../model/time-range.ts";
import type { Random } from "../../runtime/backoff.ts";
import { computeTargetEnd, computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { readSeriesCoverage } from "../../warehouse/coverage/series-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ensureServiceTime, type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, type Problem, toProblem } from "../context/error-policy.ts";
import { retryUntilDone, runConcurrently } from "../context/retry.ts";
import { settleDelay } from "../selection/targets.ts";
import { cutOnGrid, dropExpired, gridIndex } from "./slices.ts";
import { type SliceResult, type SliceWalk, WINDOW_EDGE_MARGIN_MICROS, walkSlice } from "./walk-slice.ts";

interface VerifyOptions {
  readonly reader: Connection;
  readonly random: Random;
  readonly refreshSeconds: number;
  readonly concurrency: number;
  /** How many slices to compare, picked at random, or a function that selects them; undefined: all. */
  readonly sample: number | ((slices: readonly SliceWalk[]) => readonly SliceWalk[]) | undefined;
}

/** A slice that differed from the service; the walk has repaired it. */
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
  const selected =
    typeof sample === "function"
      ? sample(allSlices)
      : sample === undefined
        ? allSlices
        : pickRandom(allSlices, sample, random);
  const retryOptions = { clock, random, signal, successCount: () => stats.successCount };
  const differences: SliceDifference[] = [];
  const problems: Problem[] = [];
  let rows = 0;
  await runConcurrently(selected, Math.ceil(concurrency * 1.5), async (walk) => {
    try {
      const result = await retryUntilDone(retryOptions, () => walkSlice(context, walk));
      rows += result.received;
      if (result.missing + result.changed + result.withdrawn === 0) return;
      const { key, name, indexType, range } = walk;
      differences.push({ stream: key.stream, name, indexType, ...range, ...result });
    } catch (error) {
      const errorClass = classifyError(error, stats.successCount);
      if (errorClass === "stop") throw error;
      // The service no longer has the index, so there is nothing to compare.
      if (errorClass === "not_found") return;
      problems.push(toProblem(walk.key.stream, `${walk.indexType} ${walk.name}`, error));
      // The service contradicts covered ranges: retract them, so that the gap filler fetches them again.
      if (error instanceof Failure && error.code === "alarm") {
        await context.ingest.call("commitRetraction", { key: walk.key, range: walk.range }, [], signal);
      }
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  return { sliceCount: selected.length, rows, differences, problems };
}

/** Everything that is covered and still served, in slices of one walk each. */
function coveredSlices({ reader, refreshSeconds }: VerifyOptions, now: Micros): SliceWalk[] {
  return historyStreams.flatMap((stream) => {
    const cadence = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: cadence };
    const newestSettled = computeTargetEnd(rules, now) - 2 * cadence;
    return readSeriesCoverage(reader, stream).flatMap(({ covered, key, serviceWindow, ...named }) => {
      const windowStart = computeWindowStart(serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
      const open = subtract(dropExpired(normalise(covered), windowStart), [
        { from: newestSettled, to: Number.POSITIVE_INFINITY },
      ]);
      // A fixed grid gives the same pieces every night, so the nightly rotation reaches all of them.
      const pieces = isDaily(stream) ? open : cutOnGrid(open, cadence);
      return pieces.toReversed().map((range) => ({
        ...named,
        range,
        urgency: isDaily(stream) ? ("bars" as const) : ("history" as const),
        key,
        serviceWindow,
        isHead: false,
        isComparison: true,
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
