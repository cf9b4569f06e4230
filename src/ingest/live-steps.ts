import type { Micros } from "../model/instant.ts";
import type { IndexTick } from "../model/records.ts";

/** Two ticks of an index that followed each other on the live feed, with room for another between them. */
export interface Skip {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

/** A step longer than so many cadences leaves room for a tick. */
const ROOM = 1.5;

/** The newest live tick of each index: shows, when the next one comes, that the feed has left one out in silence. */
export class LiveSteps {
  /** By type and index. */
  readonly #newest = new Map<string, Map<string, Micros>>();

  take(ticks: readonly IndexTick[], cadence: Micros): Skip[] {
    const skips: Skip[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      let newest = this.#newest.get(indexType);
      if (!newest) {
        newest = new Map();
        this.#newest.set(indexType, newest);
      }
      const after = newest.get(indexId);
      if (after !== undefined && ts <= after) continue;
      newest.set(indexId, ts);
      if (after !== undefined && ts - after > ROOM * cadence)
        skips.push({ indexType, indexId, after, at: ts });
    }
    return skips;
  }

  forget(): void {
    this.#newest.clear();
  }
}
