import { failureCode } from "../../model/failure.ts";
import { historyStreams, WINDOW_EDGE_MARGIN_MICROS } from "../../model/streams.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import { MAX_TASK_TRIES } from "../../service/limits.ts";
import { type LedgerKey, ledgerKeyText, readNotFoundSeries } from "../../warehouse/coverage/ledger.ts";
import { readPublication } from "../../warehouse/coverage/publication.ts";
import { findOldestRow } from "../../warehouse/rows/row-queries.ts";
import {
  classifyError,
  type Problem,
  retryDelayMs,
  type SyncContext,
  serviceNow,
  toProblem,
} from "../context/context.ts";
import { countDoneRequests, type RunStats } from "../context/run-stats.ts";
import { NotFoundAnswers, runWalk } from "./run-walk.ts";
import {
  addPlanned,
  findOpenGaps,
  type GapFilter,
  planGaps,
  type SliceWalk,
  urgencies,
  type WalkPlan,
} from "./walk-planner.ts";
import { type ActiveWalk, drainQueue, WalkQueue } from "./walk-queue.ts";

/** During a round this long the head grows enough to justify another round. */
const MIN_LONG_ROUND_MS = 120_000;

/** Servers that have published different amounts must not keep the run going. */
const MAX_PUBLISHED_ROUNDS = 2;

/**
 * More walks than requests in flight, because some walks are always decoding or committing a page. With as many more as there
 * are, series of the same length advance evenly, so that the last of them do not leave connections idle.
 */
const WALKS_PER_REQUEST = 2;

/** A shorter round says little about the rate of a long one. */
const MIN_MEASURED_REQUESTS = 50;

/**
 * Fills every gap of the targets, whether from a first backfill, an interrupted run or an outage: each round reads the
 * gaps from the ledger again.
 */
export async function fillGaps(context: SyncContext, filter: GapFilter) {
  const { reader, random, settings, clock, ingest, stats, signal, log } = context;
  const failures = new Map<string, { count: number; isGivenUp: boolean }>();
  const notFound = new NotFoundAnswers(context);
  const parked = new Map<string, Problem>();
  /** Why a series stayed open, for the report and the view `gaps`. */
  const openProblems = new Map<string, { readonly key: LedgerKey; readonly problem: Problem }>();

  let lastRoundMs = Number.POSITIVE_INFINITY;
  let publishedRounds = 0;
  for (let round = 0, failedRounds = 0; ; round++) {
    signal.throwIfAborted();
    const now = serviceNow(context);
    const startedAt = clock.monotonic();
    const plan = planGaps(reader, now, settings, filter);
    if (plan.lost.length > 0) await ingest.call("commitLostRanges", plan.lost, signal);
    const isOpen = (walk: SliceWalk) =>
      !isParked(parked, walk) && !failures.get(ledgerKeyText(walk.series.key))?.isGivenUp;
    const walks = plan.walks.filter(isOpen);
    const finish = async () => {
      await settleExpiredEdge(context, filter);
      for (const [reason, group] of Map.groupBy(openProblems.values(), ({ problem }) => problem.code)) {
        // Its range has a reason of its own; the rest of the series is not blocked.
        if (reason === "withdrawal_unconfirmed") continue;
        const keys = group.map(({ key }) => key);
        await ingest.call("commitBlockedReason", { keys, reason }, signal);
      }
      const problems = [...openProblems.values()].map(({ problem }) => problem);
      /** `asOf`: gaps were searched up to this timestamp (service time). */
      return { problems: [...parked.values(), ...problems], asOf: now };
    };
    if (walks.length === 0) return finish();

    for (const counts of historyStreams.map((stream) => stats.forStream(stream))) {
      counts.plannedRequests = countDoneRequests(counts);
      counts.plannedMicros = counts.doneMicros;
    }
    for (const walk of walks) addPlanned(stats, walk);
    log.debug({ round, walks: walks.length }, "filling gaps");
    const requestsBefore = countRequests(stats);
    const { failed, unconfirmed, clamped, hasReopened } = await runRound(
      context,
      { ...plan, walks },
      parked,
      notFound,
    );
    const requests = countRequests(stats) - requestsBefore;
    const seconds = (clock.monotonic() - startedAt) / 1000;
    if (requests >= MIN_MEASURED_REQUESTS && seconds > 0)
      await ingest.call("commitRequestRate", requests / seconds, signal);
    const countedKeys = new Set<string>();
    for (const { walk, error, countsAsTry } of failed) {
      const key = ledgerKeyText(walk.series.key);
      const failure = failures.get(key) ?? { count: 0, isGivenUp: false };
      // All failures of one series in one round count as one: a long series on a bad link fails in several slices.
      if (countsAsTry && !countedKeys.has(key)) {
        countedKeys.add(key);
        failure.count++;
      }
      // An index that is refused is asked once more: when the service has served another one, its answer counts.
      const isFirstRefusal =
        failureCode(error) === "rejected" && !isSaidEnough("refused index", failure.count);
      failure.isGivenUp ||=
        (classifyError(error, stats.successCount) === "give_up" && !isFirstRefusal) ||
        failure.count >= MAX_TASK_TRIES;
      failures.set(key, failure);
    }
    for (const { series } of walks) openProblems.delete(ledgerKeyText(series.key));
    // An unconfirmed claim is no failure of this run: the service is asked again later.
    for (const { walk, error } of [...failed, ...unconfirmed]) {
      const { key, indexType, name } = walk.series;
      const problem = toProblem(key.stream, `${indexType} ${name}`, error);
      openProblems.set(ledgerKeyText(key), { key, problem });
    }
    if (failed.length === 0) {
      const roundMs = clock.monotonic() - startedAt;
      // Each round must take at most half as long as the last one. Otherwise a slow service would keep the run going.
      const isCatchingUp = roundMs >= MIN_LONG_ROUND_MS && roundMs <= lastRoundMs / 2;
      // A slice below the head may have been walked before the head showed that the service has published more.
      const isPublishedNow =
        publishedRounds < MAX_PUBLISHED_ROUNDS &&
        clamped.some(
          ({ series, range }) => (readPublication(reader, series.key)?.publishedTo ?? 0) >= range.to,
        );
      if (isPublishedNow) publishedRounds++;
      if (!hasReopened && !isPublishedNow && !isCatchingUp) return finish();
      lastRoundMs = roundMs;
      failedRounds = 0;
    } else {
      const delayMs = retryDelayMs(failedRounds++, random);
      log.warn({ failed: failed.length, delayMs: Math.round(delayMs) }, "some gaps stayed open, retrying");
      await clock.sleep(delayMs, signal);
    }
  }
}

function countRequests(stats: RunStats): number {
  return stats.forStream("index_ticks").requests + stats.forStream("ohlcv").requests;
}

interface OpenWalk {
  readonly walk: SliceWalk;
  readonly error: unknown;
  /** The service was answering, so the failure counts towards the maximum number of tries. */
  readonly countsAsTry: boolean;
}

async function runRound(
  context: SyncContext,
  plan: Pick<WalkPlan, "walks" | "rechecks" | "day">,
  parked: Map<string, Problem>,
  notFound: NotFoundAnswers,
) {
  const { reader, settings, ingest, stats, signal } = context;
  const { walks } = plan;
  const failed: OpenWalk[] = [];
  /** The service must repeat what it says about stored rows. */
  const unconfirmed: OpenWalk[] = [];
  const clamped: SliceWalk[] = [];
  const unblocked: LedgerKey[] = [];
  let hasReopened = false;
  const notFoundSeries = {
    index_ticks: readNotFoundSeries(reader, "index_ticks"),
    ohlcv: readNotFoundSeries(reader, "ohlcv"),
  };
  const fill = async (active: ActiveWalk) => {
    const { walk } = active;
    if (isParked(parked, walk)) {
      queue.finish(active, { kind: "not_found" });
      return;
    }
    const { key, blockedReason } = walk.series;
    const outcome = await runWalk(context, walk, { notFound, progress: active });
    if (outcome.kind === "forbidden") {
      queue.finish(active, { kind: "not_found" });
      await park(context, walk, walks, parked, outcome.error);
      return;
    }
    if (outcome.kind === "failed") {
      failed.push({ walk, error: outcome.error, countsAsTry: outcome.countsAsTry });
      queue.finish(active, outcome);
      return;
    }
    const result = outcome.kind === "filled" ? outcome.result : undefined;
    const { settled, isSeriesFilled } = queue.finish(active, { ...result, kind: outcome.kind });
    for (const { range } of settled) stats.forStream(key.stream).doneMicros += range.to - range.from;
    if (outcome.kind === "filled") {
      hasReopened ||= outcome.result.hasReopened;
      if (outcome.result.isUnpublished && !walk.isHead) clamped.push(walk);
      if (outcome.unconfirmed) unconfirmed.push({ walk, error: outcome.unconfirmed, countsAsTry: false });
    }
    if (blockedReason !== null) unblocked.push(key);
    if (isSeriesFilled && plan.rechecks.has(ledgerKeyText(key)))
      await ingest.call("commitRecheck", { key, day: plan.day }, signal);
  };
  // Series known to exist go first, because many 404s in a row look like a broken service.
  const rank = ({ urgency, series: { key } }: SliceWalk) =>
    2 * urgencies.indexOf(urgency) + (notFoundSeries[key.stream].has(key.series) ? 1 : 0);
  const queue = new WalkQueue(walks, ({ key }) => findOldestRow(reader, key), rank);
  await drainQueue(queue, settings.concurrency * WALKS_PER_REQUEST, fill);
  if (unblocked.length > 0)
    await ingest.call("commitBlockedReason", { keys: unblocked, reason: null }, signal);
  return { failed, unconfirmed, clamped, hasReopened };
}

/** All indices of a type need the same scope, so a 403 parks the whole family, unless it concerns one index only. */
function indexFamily({ series: { key, indexType } }: SliceWalk): string {
  return `${key.stream} ${indexType}`;
}

function isParked(parked: ReadonlyMap<string, Problem>, walk: SliceWalk): boolean {
  return parked.has(indexFamily(walk)) || parked.has(ledgerKeyText(walk.series.key));
}

async function park(
  { ingest, signal }: SyncContext,
  walk: SliceWalk,
  walks: readonly SliceWalk[],
  parked: Map<string, Problem>,
  error: unknown,
): Promise<void> {
  if (isParked(parked, walk)) return;
  const isOneIndex = failureCode(error) === "index_forbidden";
  const parkedKey = (each: SliceWalk) => (isOneIndex ? ledgerKeyText(each.series.key) : indexFamily(each));
  const { key, indexType, name } = walk.series;
  parked.set(parkedKey(walk), toProblem(key.stream, isOneIndex ? `${indexType} ${name}` : indexType, error));
  const same = walks.filter((other) => parkedKey(other) === parkedKey(walk));
  const keys = new Map(same.map(({ series }) => [ledgerKeyText(series.key), series.key]));
  // Its indices that were denied first are no problems of their own.
  if (!isOneIndex) for (const key of keys.keys()) parked.delete(key);
  await ingest.call("commitBlockedReason", { keys: [...keys.values()], reason: "forbidden" }, signal);
}

/**
 * The plan skips the oldest seconds of the window, because a response would come too late. Waits until they have left the
 * window, then records them as lost.
 */
async function settleExpiredEdge(context: SyncContext, filter: GapFilter): Promise<void> {
  const { reader, settings, clock, ingest, signal } = context;
  const now = serviceNow(context);
  const expiryTimes = findOpenGaps(reader, now, filter).flatMap(({ open, serviceWindow }) =>
    serviceWindow === null ? [] : open.map(({ to }) => to + serviceWindow),
  );
  const expiringSoon = expiryTimes.filter((end) => end > now && end <= now + 2 * WINDOW_EDGE_MARGIN_MICROS);
  if (expiringSoon.length > 0)
    await clock.sleep((Math.max(...expiringSoon) - now) / MICROS_PER_MS + 50, signal);
  const later = serviceNow(context);
  const plan = planGaps(reader, later, settings, filter);
  if (plan.lost.length > 0) await ingest.call("commitLostRanges", plan.lost, signal);
}
