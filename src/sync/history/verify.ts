import { Failure, failureCode } from "../../model/failure.ts";
import type { Confirmations } from "../../model/status/confirmations.ts";
import {
  cadenceOf,
  historyStreams,
  isDaily,
  settleDelay,
  WINDOW_EDGE_MARGIN_MICROS,
} from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { Random } from "../../runtime/backoff.ts";
import { computeTargetEnd, computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { wasNotFound } from "../../warehouse/coverage/not-found.ts";
import { readPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import { readSeriesCoverage } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows, findOldestRow, readRowSpacing } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ensureServiceTime, type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, isSameProblem, type Problem, toProblem } from "../context/error-policy.ts";
import { retryUntilDone } from "../context/retry.ts";
import { findOpenGaps, summarizeClaims } from "./gap-planner.ts";
import { NotFoundAnswers } from "./not-found-answers.ts";
import { cutOnGrid, dropExpired, gridCadence, sliceLength } from "./slices.ts";
import { drainQueue, WalkQueue } from "./walk-queue.ts";
import { type SliceResult, type SliceWalk, unconfirmedFailure, walkSlice } from "./walk-slice.ts";

interface CompareOptions {
  readonly reader: Connection;
  readonly random: Random;
  readonly concurrency: number;
}

interface VerifyOptions extends CompareOptions {
  readonly refreshSeconds: number;
  /** How many slices to compare, picked at random; undefined: all. */
  readonly sample: number | undefined;
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
interface UnservedRows {
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
 * Compares what is covered with the service, and the ranges of its claims against stored rows: a difference that stands is
 * reported every time.
 */
export async function verify(
  context: SyncContext,
  options: VerifyOptions,
): Promise<VerifyResult & { readonly confirmations: Confirmations }> {
  const { reader, random, refreshSeconds, sample, acceptsWithdrawals = false } = options;
  // The start of the window depends on the service's time.
  await ensureServiceTime(context, random);
  const slices = coveredSlices(reader, refreshSeconds, serviceNow(context), {
    includesEnds: true,
    includesClaim: ({ kind }) => acceptsWithdrawals || isIncident(kind),
  }).map((slice) => ({ ...slice, acceptsWithdrawals }));
  const sampled = sample === undefined ? slices : pickRandom(slices, sample, random);
  const selected = new Set([...sampled, ...slices.filter(({ isClaimed }) => isClaimed)]);
  const compared = await compareSlices(context, options, [...selected]);
  const unproven = findOpenGaps(reader, serviceNow(context), {});
  return { ...compared, confirmations: summarizeClaims(reader, unproven, context.withdrawals) };
}

/**
 * Walks covered ranges again. A page is authoritative for its proven range, so its commit also repairs what differs; the
 * previous values go to `revisions`.
 */
export async function compareSlices(
  context: SyncContext,
  { reader, random, concurrency }: CompareOptions,
  slices: readonly SliceWalk[],
): Promise<VerifyResult> {
  const { signal, stats } = context;
  const differences: SliceDifference[] = [];
  const problems: Problem[] = [];
  const historyEnds = new Map<string, { readonly walk: SliceWalk; readonly before: Micros }>();
  const notFound = new NotFoundAnswers(reader);
  let rows = 0;
  let extraChanged = 0;
  const findRow = ({ key }: SliceWalk) => findOldestRow(reader, key);
  const queue = new WalkQueue({ walks: slices, rank: () => 0, findOldestRow: findRow });
  await drainQueue(queue, Math.ceil(concurrency * 1.5), async (active) => {
    const { walk } = active;
    const { key, name, indexType, range } = walk;
    try {
      const result = await retryUntilDone(context, random, () =>
        walkSlice(context, walk, { progress: active }),
      );
      queue.finish(active, { kind: result.isUnexplored ? "empty" : "filled", ...result });
      if (!result.isUnexplored) notFound.recordFound(walk);
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
    } catch (caught) {
      const errorClass = classifyError(caught, stats.successCount);
      if (errorClass === "stop") throw caught;
      const { from, position } = active;
      const rejection = caught instanceof Failure && caught.code === "rejected" ? caught : undefined;
      const isAnswer = errorClass === "not_found" || rejection !== undefined;
      const doubt =
        isAnswer && walk.acceptsWithdrawals
          ? await notFound.commit(context, walk, { from, to: range.to }, rejection)
          : rejection;
      // The service does not have the index, so there is nothing to compare.
      const isNotFound = isAnswer && (doubt === undefined || wasNotFound(reader, key));
      const error = doubt ?? caught;
      const isForbidden = errorClass === "forbidden";
      queue.finish(active, { kind: isNotFound || isForbidden ? "not_found" : "failed" });
      if (isNotFound) return;
      // All indices of a type need the same scope.
      const isOfType = isForbidden && failureCode(error) !== "index_forbidden";
      const problem = toProblem(key.stream, isOfType ? indexType : `${indexType} ${name}`, error);
      if (!problems.some((other) => isSameProblem(other, problem))) problems.push(problem);
      // The service contradicts covered ranges: retract them, so that the gap filler fetches them again.
      if (error instanceof Failure && error.code === "alarm") {
        const length = sliceLength(walk.cadence);
        const near = { from: Math.max(from, position - length), to: Math.min(range.to, position + length) };
        await context.ingest.call("commitRetraction", { key, range: near }, signal);
      }
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  const unserved = [...historyEnds.values()].map(
    ({ walk: { key, name, indexType, serviceWindow }, before }) => {
      const from = computeWindowStart(serviceWindow, serviceNow(context));
      const count = countStoredRows(reader, key, { from, to: before });
      return { stream: key.stream, name, indexType, before, rows: count };
    },
  );
  return { sliceCount: slices.length, rows, extraChanged, unserved, differences, problems };
}

interface CoveredSlice extends SliceWalk {
  /** It has a range that the service makes a claim about. */
  readonly isClaimed: boolean;
}

interface SliceOptions {
  /** Also what precedes a history. */
  readonly includesEnds: boolean;
  /** Also the ranges of these claims. */
  readonly includesClaim: (claim: PendingClaim) => boolean;
}

/** Everything that is covered and still served, in slices of one walk each. */
export function coveredSlices(
  reader: Connection,
  refreshSeconds: number,
  now: Micros,
  { includesEnds, includesClaim }: SliceOptions,
): CoveredSlice[] {
  return historyStreams.flatMap((stream) => {
    const pending = readPendingClaims(reader, stream);
    const cadence = cadenceOf(stream, refreshSeconds);
    // A walk also receives records slightly newer than its range. They must be settled: provisional records differ.
    const rules = { settleDelay: settleDelay(refreshSeconds), step: cadence };
    const newestSettled = computeTargetEnd(rules, now) - 2 * cadence;
    return readSeriesCoverage(reader, stream).flatMap((series) => {
      const { covered, beforeHistory: settledEnds, key, serviceWindow, ...named } = series;
      const windowStart = computeWindowStart(serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
      const claims = (pending.get(key.series) ?? []).filter(includesClaim);
      const claimed = claims.map(({ range }) => range);
      const ends = claims.filter(({ kind }) => kind === "end").map(({ range }) => range);
      const beforeHistory = normalise([...settledEnds, ...ends]);
      const compared = subtract(normalise(covered), [{ from: newestSettled, to: Number.POSITIVE_INFINITY }]);
      const open = subtract(
        dropExpired(normalise([...compared, ...claimed]), windowStart),
        includesEnds ? [] : beforeHistory,
      );
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
        isClaimed: claimed.some(({ from, to }) => from < range.to && range.from < to),
        period: cadence,
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
