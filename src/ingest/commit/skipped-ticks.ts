import type { IndexTick } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";

/**
 * Two consecutive live ticks of an index (at `after` and `at`) between which at least one tick is missing.
 */
export interface SkippedTicks {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

/** The newest live tick of an index since the start. */
type NewestTick = Readonly<Pick<IndexTick, "indexType" | "indexId" | "ts">>;

interface TickProgress {
  newest: Micros;
  /** Set if the last step was too long; reported at the next tick, since skipped ticks may arrive late. */
  pendingSkip: SkippedTicks | undefined;
}

/** A longer step between two ticks means that one was skipped. */
export const MAX_STEP_PERIODS = 1.5;

/** Finds ticks that the feed skipped silently, by the time between consecutive ticks of each index. */
export class SkippedTickDetector {
  /** By index type and index id. */
  readonly #progress = new Map<string, Map<string, TickProgress>>();

  listNewestTicks(): NewestTick[] {
    return [...this.#progress].flatMap(([indexType, progressById]) =>
      [...progressById].map(([indexId, { newest }]) => ({ indexType, indexId, ts: newest })),
    );
  }

  /** Returns the skips that no late tick filled before the next tick. Call it after the batch is committed. */
  detect(ticks: readonly IndexTick[], cadence: Micros): SkippedTicks[] {
    const skips: SkippedTicks[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      let progressById = this.#progress.get(indexType);
      if (!progressById) {
        progressById = new Map();
        this.#progress.set(indexType, progressById);
      }
      const progress = progressById.get(indexId);
      if (!progress) progressById.set(indexId, { newest: ts, pendingSkip: undefined });
      else if (ts > progress.newest) {
        if (progress.pendingSkip) skips.push(progress.pendingSkip);
        const { newest: after } = progress;
        // Allocates nothing for the usual case, in which none was skipped.
        progress.pendingSkip = hasSkipped(after, ts, cadence)
          ? { indexType, indexId, after, at: ts }
          : undefined;
        progress.newest = ts;
      } else if (progress.pendingSkip && ts > progress.pendingSkip.after && ts < progress.pendingSkip.at) {
        const parts = [
          { ...progress.pendingSkip, at: ts },
          { ...progress.pendingSkip, after: ts },
        ];
        progress.pendingSkip = parts.find(({ after, at }) => hasSkipped(after, at, cadence));
      }
    }
    return skips;
  }
}

function hasSkipped(after: Micros, at: Micros, cadence: Micros): boolean {
  return at - after > MAX_STEP_PERIODS * cadence;
}
