import type { Micros } from "../../../src/model/time.ts";
import { intersect, subtract, type TimeRange, union } from "../../../src/model/time-range.ts";
import type { PageAnswer, SeriesRules } from "../../../src/rule/answer.ts";
import { findContradiction, interpret } from "../../../src/rule/interpret.ts";
import type { PagePosition } from "../../../src/service/pagination/history-walk.ts";
import { toWalkPosition } from "../../../src/sync/history/walk-slice.ts";
import { storedSeries } from "../rule/stored-series.ts";

/** A page contradicts the walk: the ingest thread then settles nothing, and the walk ends. */
export class WalkContradiction extends Error {}

/** The service has published everything, and nothing is stored: what a page proves depends on its walk alone. */
const published = storedSeries({ publication: { publishedTo: Number.POSITIVE_INFINITY } });

/** Computes the ranges that the pages of a walk cover, by the rule of the ingest thread; an end counts at once. */
export class ProvenCoverage {
  readonly #gap: TimeRange;
  readonly #rules: SeriesRules;
  #settled: readonly TimeRange[] = [];

  constructor(gap: TimeRange) {
    this.#gap = gap;
    this.#rules = {
      ...{ period: 1, settleDelay: 0, lateness: 0, step: 1, isDaily: false },
      ...{ quietMargin: 0, windowStart: Number.MIN_SAFE_INTEGER, floor: gap.from },
    };
  }

  /**
   * Throws `WalkContradiction` if the page contradicts the walk, or is not sorted newest first and proves
   * nothing.
   */
  addPage(timestamps: readonly Micros[], position: PagePosition, asOf = Number.POSITIVE_INFINITY): void {
    const page: PageAnswer = {
      ...toWalkPosition(position, this.#gap),
      ...{ timestamps, foreign: 0, isLast: position.end === "exhausted" },
      ...{ isHead: false, isSilenceConfirmed: true, madeAt: undefined, asOf, isStale: false },
    };
    const contradiction = findContradiction(page);
    if (contradiction === "newer_than_proven")
      this.#settled = subtract(this.#settled, [{ from: page.provenFrom, to: page.gap.to }]);
    if (contradiction) throw new WalkContradiction(contradiction);
    for (const { range } of interpret(page, published, [], this.#rules).claims)
      if (range.from < asOf)
        this.#settled = union(this.#settled, [{ from: range.from, to: Math.min(range.to, asOf) }]);
  }

  covers(ts: Micros): boolean {
    return this.#settled.some(({ from, to }) => from <= ts && ts < to);
  }

  get openRanges(): readonly TimeRange[] {
    return intersect(subtract([this.#gap], this.#settled), [this.#gap]);
  }
}
