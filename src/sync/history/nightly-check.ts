import { failureCode } from "../../model/failure.ts";
import { historyStreams } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { readSeriesLedgers } from "../../warehouse/coverage/series-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type JobRun, readJobRuns } from "../../warehouse/tables/warehouse-state.ts";
import { runConcurrently, type SyncContext, serviceNow } from "../context/context.ts";
import { planNight } from "./comparison-plan.ts";
import { runWalk } from "./run-walk.ts";
import { compareSlices } from "./verify.ts";
import type { SliceWalk } from "./walk-planner.ts";
import type { WalkProgress } from "./walk-slice.ts";

/** The nightly job of the daemon, and what `backfill` does of it once a day. */
export const NIGHTLY_JOB = "nightly";

export type NightlyResult = Awaited<ReturnType<typeof checkNight>>;
export type EndChecks = Awaited<ReturnType<typeof checkEnds>>;

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

/** Asks the service once more about what is settled. What it contradicts is repaired, or open again. */
export async function checkNight(
  context: SyncContext,
  plan = planNight(context.reader, context.settings.refreshSeconds, serviceNow(context)),
) {
  const comparison = await compareSlices(context, plan.slices);
  const ends = await checkEnds(context, plan.ends);
  const { differences, problems } = comparison;
  const hasReopened =
    ends.reopened + problems.length > 0 || differences.some((difference) => difference.hasReopened);
  /** `hasReopened`: ranges are open that were settled before. */
  return { ends, comparison, nights: plan.nights, hasReopened };
}

/**
 * Asks once more below each end, with one small request. A walk stores what it finds, and one older record takes back what the
 * end had settled; the gap filler fetches the rest. A request that fails is made again the next night.
 */
export async function checkEnds(context: SyncContext, ends: readonly SliceWalk[]) {
  const failures: string[] = [];
  await runConcurrently(ends, context.settings.concurrency, async (end) => {
    const outcome = await runWalk(context, end, { progress: firstPageOnly(end.range.from) });
    // An index that does not exist has nothing older.
    if ("error" in outcome) failures.push(failureCode(outcome.error));
  });
  const unanswered = failures.length;
  if (unanswered > 0)
    context.log.warn({ unanswered, codes: [...new Set(failures)] }, "ends of histories not checked");
  /** `reopened`: histories with an older record, so that what their end had settled is open again. */
  return { asked: ends.length, reopened: countReopened(context.reader, ends), unanswered };
}

/** By the ledger: a page of another walk may have shown the older record first. */
function countReopened(reader: Connection, ends: readonly SliceWalk[]): number {
  const settled = historyStreams.flatMap((stream) => readSeriesLedgers(reader, stream));
  const settledTo = new Map(settled.map(({ key, end }) => [ledgerKeyText(key), end?.to ?? 0]));
  return ends.filter(({ series, range }) => (settledTo.get(ledgerKeyText(series.key)) ?? 0) < range.to)
    .length;
}

/** Ends a walk after its first page, and before it if the service has nothing there. */
function firstPageOnly(start: Micros): WalkProgress {
  let from = start;
  return {
    get from() {
      return from;
    },
    isExploring: true,
    pageSize: 1,
    extend: () => {},
    onPage() {
      from = Number.POSITIVE_INFINITY;
    },
  };
}
