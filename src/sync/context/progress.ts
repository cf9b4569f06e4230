import type { Stream } from "../../model/streams.ts";
import type { RunStats, StreamStats } from "./run-stats.ts";

/** The streams whose history is walked: their progress can be told in advance. */
export const HISTORY_PROGRESS_STREAMS = ["index_ticks", "ohlcv"] as const satisfies readonly Stream[];

/** The progress of one piece of work. `done` and `planned` have the same unit. */
export interface ProgressCounts {
  readonly rows: number;
  readonly done: number;
  readonly planned: number;
}

/** Counts new rows, so that the bars add up to the total at the end: some records are received twice. */
export function countsOf(stats: RunStats, stream: Stream): ProgressCounts {
  const { inserted, doneMicros, plannedMicros } = stats.forStream(stream);
  return { rows: inserted, done: doneMicros, planned: plannedMicros };
}

export function computeProgress(
  { rows, done, planned }: ProgressCounts,
  ms: number,
): { rowsPerSecond: number; percent: number; secondsLeft: number | null } {
  // A range that is walked twice counts twice, so `done` can exceed `planned`.
  const fraction = planned === 0 ? 1 : Math.min(1, done / planned);
  const percent = fraction === 1 ? 100 : Math.min(99, Math.floor(fraction * 100));
  const secondsLeft = fraction === 0 ? null : Math.round(((ms / fraction) * (1 - fraction)) / 1000);
  return { rowsPerSecond: ms === 0 ? 0 : Math.round((rows / ms) * 1000), percent, secondsLeft };
}

/** The first requests are those that take the least time: they say nothing about the time left. */
const MIN_ESTIMATED_MS = 20_000;

/**
 * The progress of all history together, `ms` after its start. The streams fraction the requests, so each counts by those it needs: a
 * stream whose turn comes last says nothing about the time left, which is null until enough is done to tell.
 */
export function computeBackfillProgress(stats: RunStats, ms: number) {
  const streams = HISTORY_PROGRESS_STREAMS.map((stream) => stats.forStream(stream)).filter(
    ({ plannedMicros }) => plannedMicros > 0,
  );
  if (streams.length === 0) return undefined;
  const { percent, rowsPerSecond, secondsLeft } = computeProgress(
    {
      rows: streams.reduce((sum, { inserted }) => sum + inserted, 0),
      done: streams.reduce((sum, stream) => sum + countDoneRequests(stream), 0),
      planned: streams.reduce((sum, { plannedRequests }) => sum + plannedRequests, 0),
    },
    ms,
  );
  const canTell = secondsLeft !== null && ms >= MIN_ESTIMATED_MS;
  return { percent, rows_per_second: rowsPerSecond, seconds_left: canTell ? secondsLeft : null };
}

/** The part of a stream's planned requests that its walked ranges stand for. */
export function countDoneRequests({ doneMicros, plannedMicros, plannedRequests }: StreamStats): number {
  return plannedMicros === 0 ? 0 : Math.min(1, doneMicros / plannedMicros) * plannedRequests;
}
