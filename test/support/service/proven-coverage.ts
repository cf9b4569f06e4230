import { prove } from "../../../src/ingest/commit/proven-range.ts";
import type { Micros } from "../../../src/model/time.ts";
import { includes, intersect, subtract, type TimeRange, union } from "../../../src/model/time-range.ts";
import type { PagePosition } from "../../../src/service/pagination/history-walk.ts";

/** The ingest thread settles nothing after this, and its walk is given up. */
export class Alarm extends Error {}

/** What the pages of a walk settle, by the rules of the ingest thread. */
export class WalkCredit {
  readonly #hole: TimeRange;
  #settled: readonly TimeRange[] = [];

  constructor(hole: TimeRange) {
    this.#hole = hole;
  }

  /** Throws `Alarm` where the page contradicts the walk, or proves nothing because it is not newest first. */
  take(moments: readonly Micros[], position: PagePosition, asOf = Number.POSITIVE_INFINITY): void {
    const hole = this.#hole;
    const isAnew = position.link === "timestamp" && position.number > 1;
    const proof = prove(
      { hole, upper: Math.min(position.ceiling, hole.to), ...(isAnew ? { anchor: hole.to } : {}) },
      { moments, foreign: 0, ends: position.end === "served_out" },
    );
    if ("contradiction" in proof) {
      if ("retract" in proof) this.#settled = subtract(this.#settled, [proof.retract]);
      throw new Alarm(proof.contradiction);
    }
    const { proven } = proof;
    if (proven && proven.from < asOf) {
      this.#settled = union(this.#settled, [{ from: proven.from, to: Math.min(proven.to, asOf) }]);
    }
  }

  has(moment: Micros): boolean {
    return includes(this.#settled, moment);
  }

  get open(): readonly TimeRange[] {
    return intersect(subtract([this.#hole], this.#settled), [this.#hole]);
  }
}
