import type { LookupCommitResult } from "../../ingest/commit/lookup.ts";
import { historyStreams, type Stream, streamOfEndpoint } from "../../model/streams.ts";
import type { PageAlarm } from "../../rule/interpret.ts";
import type { ClientEvent } from "../../service/http/client-events.ts";
import type { WriteRecordsResult } from "../../warehouse/rows/row-writer.ts";

const noStats = {
  inserted: 0,
  /** Rows whose values the service has changed. */
  changed: 0,
  /** Rows that the service no longer has. */
  withdrawn: 0,
  rejected: 0,
  requests: 0,
  /** Total duration of the ranges to walk, over all series. */
  plannedMicros: 0,
  /** The part of `plannedMicros` that has been walked. */
  doneMicros: 0,
  /** About as many requests as the planned ranges need. */
  plannedRequests: 0,
};

export type StreamStats = typeof noStats;

/** Counts of one commit of records from REST. */
interface CommitStats extends Pick<WriteRecordsResult, "inserted" | "changed" | "unchanged"> {
  readonly rejected: number;
  readonly withdrawn: number;
  /** Records of other series. */
  readonly foreign: number;
  /** Why the page proved nothing, or why the lookup delisted nothing. */
  readonly alarm?: PageAlarm | "mass_withdrawal" | "shrunken_list" | undefined;
}

export class RunStats {
  readonly #onCommit: ((stream: Stream, counts: CommitStats) => void) | undefined;
  readonly #streams = new Map<Stream, StreamStats>();
  /** Responses of data endpoints with status 200, readable or not. */
  successCount = 0;

  constructor(onCommit?: (stream: Stream, counts: CommitStats) => void) {
    this.#onCommit = onCommit;
  }

  forStream(stream: Stream): StreamStats {
    const stats = this.#streams.get(stream) ?? { ...noStats };
    this.#streams.set(stream, stats);
    return stats;
  }

  onEvent(event: ClientEvent): void {
    if (event.kind !== "request") return;
    const stream = streamOfEndpoint(event.endpoint);
    if (stream === undefined) return;
    this.forStream(stream).requests++;
    if (event.status === 200) this.successCount++;
  }

  addRows(
    stream: Stream,
    { inserted, changed, unchanged }: Pick<CommitStats, "inserted" | "changed" | "unchanged">,
    counts: Partial<CommitStats> = {},
  ): void {
    const { rejected = 0, withdrawn = 0, foreign = 0, alarm } = counts;
    const stats = this.forStream(stream);
    stats.inserted += inserted;
    stats.changed += changed;
    stats.rejected += rejected;
    stats.withdrawn += withdrawn;
    this.#onCommit?.(stream, { inserted, changed, unchanged, rejected, withdrawn, foreign, alarm });
  }

  addLookup(stream: Stream, lookup: LookupCommitResult): void {
    const { added, changed, listed, rejected, incident } = lookup;
    const unchanged = Math.max(0, listed - added - changed);
    const alarm = incident ? "shrunken_list" : undefined;
    this.addRows(stream, { inserted: added, changed, unchanged }, { rejected, alarm });
  }
}

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

export function computeProgress({ rows, done, planned }: ProgressCounts, ms: number) {
  // A range that is walked twice counts twice, so `done` can exceed `planned`.
  const fraction = planned === 0 ? 1 : Math.min(1, done / planned);
  const percent = fraction === 1 ? 100 : Math.min(99, Math.floor(fraction * 100));
  const secondsLeft = fraction === 0 ? null : Math.round(((ms / fraction) * (1 - fraction)) / 1000);
  return { rowsPerSecond: ms === 0 ? 0 : Math.round((rows / ms) * 1000), percent, secondsLeft };
}

/** The first requests are those that take the least time: they say nothing about the time left. */
const MIN_ESTIMATED_MS = 20_000;

/**
 * The progress of all history together, `ms` after its start. The streams share the requests, so each counts by those it needs: a
 * stream whose turn comes last says nothing about the time left, which is null until enough is done to know.
 */
export function computeBackfillProgress(stats: RunStats, ms: number) {
  const streams = historyStreams
    .map((stream) => stats.forStream(stream))
    .filter(({ plannedMicros }) => plannedMicros > 0);
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
