import type { Stream } from "../../model/streams.ts";
import type { RunStats } from "./run-stats.ts";

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
  const share = planned === 0 ? 1 : Math.min(1, done / planned);
  const percent = share === 1 ? 100 : Math.min(99, Math.floor(share * 100));
  const secondsLeft = share === 0 ? null : Math.round(((ms / share) * (1 - share)) / 1000);
  return { rowsPerSecond: ms === 0 ? 0 : Math.round((rows / ms) * 1000), percent, secondsLeft };
}

interface BackfillProgress {
  readonly percent: number;
  readonly rowsPerSecond: number;
  /** Undefined until something is done. */
  readonly secondsLeft: number | undefined;
}

/** The progress of all history together, `ms` after its start: as far as the stream that needs longest. */
export function computeBackfillProgress(stats: RunStats, ms: number): BackfillProgress | undefined {
  const streams = HISTORY_PROGRESS_STREAMS.map((stream) => countsOf(stats, stream))
    .filter(({ planned }) => planned > 0)
    .map((counts) => computeProgress(counts, ms));
  if (streams.length === 0) return undefined;
  const isUnknown = streams.some(({ secondsLeft }) => secondsLeft === null);
  return {
    percent: Math.min(...streams.map(({ percent }) => percent)),
    rowsPerSecond: streams.reduce((sum, { rowsPerSecond }) => sum + rowsPerSecond, 0),
    secondsLeft: isUnknown ? undefined : Math.max(...streams.map(({ secondsLeft }) => secondsLeft ?? 0)),
  };
}
