import type { Micros } from "../model/instant.ts";
import type { IndexTick } from "../model/records.ts";

/** Two ticks of an index that followed each other on the live feed, with room for another between them. */
export interface Skip {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

interface Steps {
  newest: Micros;
  /** The last step, if it was too long: what was left out may still come late. */
  long: Skip | undefined;
}

/** A step longer than so many cadences leaves room for a tick. */
const ROOM = 1.5;

/** How the live ticks of each index follow each other: shows what the feed has left out in silence. */
export class LiveSteps {
  /** By type and index. */
  readonly #steps = new Map<string, Map<string, Steps>>();

  /** Returns the steps that were too long and stayed so until the tick after them. */
  take(ticks: readonly IndexTick[], cadence: Micros): Skip[] {
    const skips: Skip[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      let ofType = this.#steps.get(indexType);
      if (!ofType) {
        ofType = new Map();
        this.#steps.set(indexType, ofType);
      }
      const steps = ofType.get(indexId);
      if (!steps) ofType.set(indexId, { newest: ts, long: undefined });
      else if (ts > steps.newest) {
        if (steps.long) skips.push(steps.long);
        const { newest: after } = steps;
        // Nearly none has room: nothing is made for the others.
        steps.long = hasRoom(after, ts, cadence) ? { indexType, indexId, after, at: ts } : undefined;
        steps.newest = ts;
      } else if (steps.long && ts > steps.long.after && ts < steps.long.at) {
        const parts = [
          { ...steps.long, at: ts },
          { ...steps.long, after: ts },
        ];
        steps.long = parts.find(({ after, at }) => hasRoom(after, at, cadence));
      }
    }
    return skips;
  }
}

function hasRoom(after: Micros, at: Micros, cadence: Micros): boolean {
  return at - after > ROOM * cadence;
}
