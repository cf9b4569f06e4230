import { findProvenRange } from "../../../src/ingest/commit/proven-range.ts";
import type { Micros } from "../../../src/model/time.ts";
import { intersect, subtract, type TimeRange, union } from "../../../src/model/time-range.ts";
import type { PagePosition } from "../../../src/service/pagination/history-walk.ts";
import { toWalkPosition } from "../../../src/sync/history/walk-slice.ts";

/** A page contradicts the walk: the ingest thread then settles nothing, and the walk ends. */
export class WalkContradiction extends Error {}

/** Computes the ranges that the pages of a walk cover, by the rules of the ingest thread. */
export class ProvenCoverage {
  readonly #gap: TimeRange;
  #settled: readonly TimeRange[] = [];

  constructor(gap: TimeRange) {
    this.#gap = gap;
  }

  /**
   * Throws `WalkContradiction` if the page contradicts the walk, or is not sorted newest first and proves
   * nothing.
   */
  addPage(timestamps: readonly Micros[], position: PagePosition, asOf = Number.POSITIVE_INFINITY): void {
    const evidence = { timestamps, foreign: 0, isLast: position.end === "exhausted" };
    const proof = findProvenRange(toWalkPosition(position, this.#gap), evidence);
    if ("contradiction" in proof) {
      if ("retract" in proof) this.#settled = subtract(this.#settled, [proof.retract]);
      throw new WalkContradiction(proof.contradiction);
    }
    const { proven } = proof;
    if (proven && proven.from < asOf) {
      this.#settled = union(this.#settled, [{ from: proven.from, to: Math.min(proven.to, asOf) }]);
    }
  }

  covers(ts: Micros): boolean {
    return this.#settled.some(({ from, to }) => from <= ts && ts < to);
  }

  get openRanges(): readonly TimeRange[] {
    return intersect(subtract([this.#gap], this.#settled), [this.#gap]);
  }
}
