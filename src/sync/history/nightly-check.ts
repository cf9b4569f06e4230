import { isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type JobRun, readJobRuns } from "../../warehouse/tables/job-runs.ts";
import { type SyncContext, type SyncSettings, serviceNow } from "../context/context.ts";
import { checkEnds, type EndChecks, planEndChecks } from "./check-ends.ts";
import { gridIndex, sliceLength } from "./slices.ts";
import { compareSlices, coveredSlices, type VerifyResult } from "./verify.ts";
import type { SliceWalk } from "./walk-slice.ts";

/** The nightly job of the daemon, and what `backfill` does of it once a day. */
export const NIGHTLY_JOB = "nightly";

/** What is asked once more in one night. */
interface NightlyPlan {
  readonly ends: readonly SliceWalk[];
  readonly slices: readonly SliceWalk[];
  /** All covered ranges are compared in so many nights. */
  readonly nights: number;
}

export interface NightlyResult {
  readonly ends: EndChecks;
  readonly comparison: VerifyResult;
  readonly nights: number;
  /** Ranges are open that were settled before. */
  readonly hasReopened: boolean;
}

/** What to ask once more in the night of `now`: below each end of a history, and a part of what is covered. */
export function planNight(reader: Connection, refreshSeconds: number, now: Micros): NightlyPlan {
  const covered = coveredSlices(reader, refreshSeconds, now, {
    includesEnds: false,
    includesClaim: () => false,
  });
  return {
    ends: planEndChecks(reader, refreshSeconds, now),
    slices: selectDueTonight(covered, now),
    nights: rotationLength(covered.length),
  };
}

/** Whether `backfill` has this night's work to do. Not on the first day: everything is fetched then. */
export function isNightDue(reader: Connection, now: Micros): boolean {
  const dayOf = (ts: Micros) => Math.floor(ts / MICROS_PER_DAY);
  const last = findLastNight(reader);
  return (
    last !== undefined && (dayOf(last.scheduledAt) !== dayOf(now) || !["ok", "new"].includes(last.outcome))
  );
}

export function findLastNight(reader: Connection): JobRun | undefined {
  return readJobRuns(reader).find(({ job }) => job === NIGHTLY_JOB);
}

interface NightlyOptions {
  readonly settings: Pick<SyncSettings, "refreshSeconds" | "concurrency">;
  readonly reader: Connection;
  readonly random: Random;
}

/** Asks the service once more about what is settled. What it contradicts is repaired, or open again. */
export async function checkNight(
  context: SyncContext,
  { settings: { refreshSeconds, concurrency }, reader, random }: NightlyOptions,
  plan = planNight(reader, refreshSeconds, serviceNow(context)),
): Promise<NightlyResult> {
  const comparison = await compareSlices(context, { reader, random, concurrency }, plan.slices);
  const ends = await checkEnds(context, { reader, concurrency }, plan.ends);
  const { differences, problems } = comparison;
  const hasReopened =
    ends.reopened + problems.length > 0 || differences.some((difference) => difference.hasReopened);
  return { ends, comparison, nights: plan.nights, hasReopened };
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
