import { Failure, failureCode } from "../../model/failure.ts";
import { computeWindowStart, historyStreams } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { PendingClaim } from "../../rule/answer.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { Random } from "../../runtime/clock.ts";
import { ledgerKeyText, wasNotFound } from "../../warehouse/coverage/ledger.ts";
import { readSeriesLedgers } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows, findOldestRow } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type JobRun, readJobRuns } from "../../warehouse/tables/warehouse-state.ts";
import {
  ensureServiceTime,
  isSameProblem,
  type Problem,
  runConcurrently,
  type SyncContext,
  serviceNow,
  toProblem,
} from "../context/context.ts";
import { planComparison, planNight } from "./comparison-plan.ts";
import { summarizeClaims } from "./run-filter.ts";
import { NotFoundAnswers, runWalk } from "./run-walk.ts";
import { findOpenGaps, type SliceWalk, sliceLength, type WalkedSeries } from "./walk-planner.ts";
import { drainQueue, WalkQueue } from "./walk-queue.ts";
import type { SliceResult, WalkProgress } from "./walk-slice.ts";

interface VerifyOptions {
  /** How many slices to compare, picked at random; undefined: all. */
  readonly sample?: number | undefined;
  /** Believe at once what the service no longer has. */
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

export type VerifyResult = Awaited<ReturnType<typeof compareSlices>>;

/**
 * Compares what is covered with the service, and the ranges of its claims against stored rows: a difference that stands is
 * reported every time.
 */
export async function verify(context: SyncContext, { sample, acceptsWithdrawals = false }: VerifyOptions) {
  const { reader, random, settings } = context;
  // The start of the window depends on the service's time.
  await ensureServiceTime(context);
  const includesClaim = ({ kind }: PendingClaim) => acceptsWithdrawals || isIncident(kind);
  const slices = planComparison(reader, settings.refreshSeconds, serviceNow(context), includesClaim);
  const sampled = sample === undefined ? slices : pickRandom(slices, sample, random);
  const selected = new Set([...sampled, ...slices.filter(({ isClaimed }) => isClaimed)]);
  const withdrawals = acceptsWithdrawals ? { answers: 1, over: 0 } : settings.withdrawals;
  const believing = { ...context, settings: { ...settings, withdrawals } };
  const compared = await compareSlices(believing, [...selected], acceptsWithdrawals);
  const unproven = findOpenGaps(reader, serviceNow(context), {});
  return { ...compared, confirmations: summarizeClaims(reader, unproven, settings.withdrawals) };
}

/**
 * Walks covered ranges again. A page is authoritative for its proven range, so its commit also repairs what differs; the
 * previous values go to `revisions`.
 */
export async function compareSlices(
  context: SyncContext,
  slices: readonly SliceWalk[],
  acceptsWithdrawals = false,
) {
  const { reader, settings, signal } = context;
  const differences: SliceDifference[] = [];
  const problems: Problem[] = [];
  const historyEnds = new Map<string, { readonly series: WalkedSeries; readonly before: Micros }>();
  const notFound = acceptsWithdrawals ? new NotFoundAnswers(context) : undefined;
  let rows = 0;
  /** Rows with the same figures, but other undocumented properties: no difference. */
  let extraChanged = 0;
  const queue = new WalkQueue(slices, ({ key }) => findOldestRow(reader, key));
  await drainQueue(queue, Math.ceil(settings.concurrency * 1.5), async (active) => {
    const { walk } = active;
    const { series, range } = walk;
    const { key, name, indexType } = series;
    const outcome = await runWalk(context, walk, {
      notFound,
      progress: active,
      isComparison: true,
      shouldRetry: true,
    });
    const report = (what: string, error: unknown) => {
      const problem = toProblem(key.stream, what, error);
      if (!problems.some((other) => isSameProblem(other, problem))) problems.push(problem);
    };
    if (outcome.kind === "filled") {
      const { result, unconfirmed } = outcome;
      queue.finish(active, { kind: "filled", ...result });
      rows += result.received;
      extraChanged += result.extraChanged;
      const { endsAt: before = 0 } = result;
      if (before > (historyEnds.get(ledgerKeyText(key))?.before ?? 0))
        historyEnds.set(ledgerKeyText(key), { series, before });
      if (!result.differing) return;
      differences.push({ stream: key.stream, name, indexType, ...result.differing, ...result });
      if (unconfirmed) report(`${indexType} ${name}`, unconfirmed);
      return;
    }
    // The service does not have the index, so there is nothing to compare.
    const wasRejected = outcome.kind === "failed" && failureCode(outcome.error) === "rejected";
    const isKnownMissing = wasRejected && wasNotFound(reader, key);
    const isWhole = outcome.kind === "forbidden" || isKnownMissing;
    queue.finish(active, { kind: isWhole ? "not_found" : outcome.kind });
    if (outcome.kind === "empty" || outcome.kind === "not_found" || isKnownMissing) return;
    const { error } = outcome;
    // All indices of a type need the same scope.
    const isOfType = outcome.kind === "forbidden" && failureCode(error) !== "index_forbidden";
    report(isOfType ? indexType : `${indexType} ${name}`, error);
    // The service contradicts covered ranges: retract them, so that the gap filler fetches them again.
    if (error instanceof Failure && error.code === "alarm") {
      const { from, position } = active;
      const length = sliceLength(series.cadence);
      const near = { from: Math.max(from, position - length), to: Math.min(range.to, position + length) };
      await context.ingest.call("commitRetraction", { key, range: near }, signal);
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  /** Rows of a series that are older than everything that the service still serves: they stay. */
  const unserved = [...historyEnds.values()].map(
    ({ series: { key, name, indexType, serviceWindow }, before }) => {
      const from = computeWindowStart(serviceWindow, serviceNow(context));
      const count = countStoredRows(reader, key, { from, to: before });
      return { stream: key.stream, name, indexType, before, rows: count };
    },
  );
  return { sliceCount: slices.length, rows, extraChanged, unserved, differences, problems };
}

function pickRandom<T>(items: readonly T[], count: number, random: Random): T[] {
  const drawn = items.map((item) => ({ item, at: random() })).sort((a, b) => a.at - b.at);
  return drawn.slice(0, count).map(({ item }) => item);
}

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
  const progress = {
    from: start,
    isExploring: true,
    pageSize: 1,
    extend: () => {},
    onPage(): void {
      progress.from = Number.POSITIVE_INFINITY;
    },
  };
  return progress;
}
