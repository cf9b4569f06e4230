import { exitCode, Failure } from "../../model/failure.ts";
import { type Stream, streams, streamTable } from "../../model/streams.ts";
import {
  classifyError,
  isSameProblem,
  type Problem,
  type SyncContext,
  serviceNow,
} from "../context/context.ts";
import { toStreamHealth } from "../context/problem-log.ts";
import { fetchSnapshots } from "../polling/snapshot-poller.ts";
import { declareUnselected, findUnselectedSeries, resolveIndexNames } from "../selection/named-series.ts";
import { refreshSelection, type SelectionResult } from "../selection/refresh.ts";
import { needsRanking } from "../selection/selectors.ts";
import { type Directory, endDeselectedSnapshots } from "../selection/targets.ts";
import { planNight } from "./comparison-plan.ts";
import { fillGaps } from "./fill-gaps.ts";
import {
  isInRun,
  isWholeRun,
  type RunFilter,
  selectNameableStreams,
  summarizeClaims,
  toGapFilter,
} from "./run-filter.ts";
import { checkNight, findLastNight, isNightDue, NIGHTLY_JOB } from "./verify.ts";
import { findOpenGaps } from "./walk-planner.ts";

/** What the command `backfill` asks of one run. */
export interface BackfillFilter extends RunFilter {
  /** Fetch the named series once even where the settings do not select them. */
  readonly fetchesUnselected?: boolean | undefined;
}

export type BackfillReport = Readonly<Awaited<ReturnType<typeof backfill>>>;

/**
 * Refreshes the lookups, declares the targets, fills their gaps, and fetches one snapshot of each snapshot stream. `hasNightlyJob`:
 * the daemon asks again about what is settled by itself.
 */
export async function backfill(context: SyncContext, filter: BackfillFilter = {}, hasNightlyJob = false) {
  const { reader, settings } = context;
  const includesStream = (stream: Stream) => isInRun(filter, stream);
  const startedAt = context.clock.monotonic();

  const refreshed = await refreshSelection(context, includesStream("market_caps"));
  const { pendingRanking } = refreshed;
  const named = filter.series && resolveIndexNames(filter.series, refreshed.directory);
  /** The streams of this run whose series may be named. */
  const selectableStreams = ({ targets }: SelectionResult) =>
    selectNameableStreams(targets, filter, settings);
  let selected: SelectionResult = refreshed;
  if (filter.fetchesUnselected) {
    const selectable = selectableStreams(selected);
    const unselected = findUnselectedSeries(named ?? [], selectable);
    await declareUnselected(context, unselected, selectable, filter.range);
  }
  const gapFilter = toGapFilter(filter, named);
  /** Fills the gaps, and fetches the snapshots of these streams. */
  const fetchSelected = async (directory: Directory, includesSnapshot: (stream: Stream) => boolean) => {
    await endDeselectedSnapshots(context, directory);
    const fillResult = await fillGaps(context, gapFilter);
    return { ...fillResult, snapshotProblems: await fetchSnapshots(context, directory, includesSnapshot) };
  };
  const storeNight = (outcome: string) =>
    context.ingest.call(
      "commitJobRun",
      { job: NIGHTLY_JOB, scheduledAt: serviceNow(context), outcome },
      context.signal,
    );
  // Planned before anything is fetched: what this run fetches needs no second look.
  const isWhole = isWholeRun(filter) && !hasNightlyJob;
  if (isWhole && !findLastNight(reader)) await storeNight("new");
  const isDue = isWhole && isNightDue(reader, serviceNow(context));
  const plan = isDue ? planNight(reader, settings.refreshSeconds, serviceNow(context)) : undefined;
  let result: Awaited<ReturnType<typeof fetchSelected>>;
  try {
    result = await fetchSelected(refreshed.directory, includesStream);
    const ranking = await pendingRanking?.waitForLastTry().catch((error: unknown) => {
      if (error instanceof Failure && classifyError(error, context.stats.successCount) !== "stop")
        return error;
      throw error;
    });
    if (ranking !== undefined) {
      selected = await refreshed.selectAgain(ranking);
      if (!(ranking instanceof Failure) && needsRanking(settings)) {
        const isAffected = (stream: Stream) => stream === "exchange_ticks" && includesStream(stream);
        const again = await fetchSelected(selected.directory, isAffected);
        const unaffected = result.snapshotProblems.filter(({ stream }) => !isAffected(stream));
        result = { ...again, snapshotProblems: [...unaffected, ...again.snapshotProblems] };
      }
    }
  } finally {
    pendingRanking?.cancel();
  }
  const night = plan && (await checkNight(context, plan));
  if (night?.hasReopened) result = { ...result, ...(await fillGaps(context, gapFilter)) };
  if (night) await storeNight(night.comparison.problems.length === 0 ? "ok" : "incomplete");

  const openGaps = findOpenGaps(reader, result.asOf, gapFilter);
  const found = [...selected.problems, ...result.problems, ...result.snapshotProblems];
  const isNew = (problem: Problem) => !found.some((other) => isSameProblem(other, problem));
  const problems = [...found, ...(night?.comparison.problems ?? []).filter(isNew)];
  const { parkedEndpoints } = context.client.health();
  const streamHealth = streams
    .filter(includesStream)
    .map((stream) => toStreamHealth(stream, problems, parkedEndpoints));
  await context.ingest.call("commitStreamHealth", streamHealth, context.signal);
  const activeStreams = streams
    .filter(includesStream)
    .filter((stream) => settings.streams[streamTable[stream].setting] !== false);
  const reports = activeStreams.map((stream) => {
    const streamGaps = openGaps.filter(({ key }) => key.stream === stream);
    const open = streamGaps.reduce((sum, { missing }) => sum + missing.length, 0);
    const unpublished = streamGaps.flatMap((series) => series.unpublished);
    const unpublishedMicros = Math.max(0, ...unpublished.map(({ from, to }) => to - from));
    return {
      stream,
      ...context.stats.forStream(stream),
      /** Number of gaps that stayed open. */
      open,
      /** Number of heads that the service has not published yet: no failure, a later run fetches them. */
      unpublished: unpublished.length,
      /** The length of the longest of them. */
      unpublishedMicros,
      /** Number of series of which the service must repeat that it has nothing older, or nothing at all: no failure. */
      unconfirmed: streamGaps.filter((series) => series.unconfirmed.length > 0).length,
    };
  });
  const notSelected = filter.fetchesUnselected
    ? []
    : findUnselectedSeries(named ?? [], selectableStreams(selected));
  const isSelected = notSelected.every(({ isSelectedElsewhere }) => isSelectedElsewhere);
  const isComplete =
    isSelected && problems.length === 0 && reports.every(({ open, rejected }) => open + rejected === 0);
  return {
    finishedAt: serviceNow(context),
    /** Gaps were searched up to this timestamp (service time). */
    asOf: result.asOf,
    seconds: (context.clock.monotonic() - startedAt) / 1000,
    /** Only the streams of this run. */
    streams: reports,
    problems,
    /** What the service must repeat: no failure, a later run asks. */
    confirmations: summarizeClaims(reader, openGaps, settings.withdrawals),
    /** Named series that the settings do not select for some streams of this run; none if they were fetched once. */
    notSelected,
    /** What was asked once more today; undefined: nothing in this run. */
    night,
    exit: isComplete ? exitCode.ok : exitCode.incomplete,
  };
}
