import { DAY_MS } from "./format.ts";
import { mixBits } from "./hash.ts";
import { MAX_DAY_LEVEL } from "./price-model.ts";

/** The ticks of a day, divided into segments. The first and the last tick of each segment are anchors. */
export class DayGrid {
  readonly day: number;
  /** The first tick of the day. */
  readonly first: number;
  readonly count: number;
  /** A power of two, at most the number of ticks after the first, so that every anchor has a tick of its own. */
  readonly segments: number;

  constructor(day: number, tickMs: number) {
    this.day = day;
    this.first = Math.ceil((day * DAY_MS) / tickMs);
    this.count = Math.ceil(((day + 1) * DAY_MS) / tickMs) - this.first;
    this.segments = this.count < 2 ? 0 : 1 << Math.min(MAX_DAY_LEVEL, Math.floor(Math.log2(this.count - 1)));
  }

  /** The tick of an anchor, counted from the first. The last anchor is the last tick of the day. */
  anchorOffset(anchor: number): number {
    return this.segments === 0 ? 0 : Math.floor((anchor * (this.count - 1)) / this.segments);
  }

  /** The newest anchor at or before a tick: the segment that the tick is in begins there. */
  anchorBefore(offset: number): number {
    return this.segments === 0 ? 0 : Math.ceil(((offset + 1) * this.segments) / (this.count - 1)) - 1;
  }

  /**
   * How far on the way from its anchor to the next one a tick lies, above 0 and below 1. It is the same for all assets: so the
   * ratio of two prices also lies between its anchors, and the extremes of every index in a day are those of anchors.
   */
  fractionAt(offset: number, salt: number): number {
    const anchor = this.anchorBefore(offset);
    const start = this.anchorOffset(anchor);
    const drift = (offset - start) / (this.anchorOffset(anchor + 1) - start);
    const noise = mixBits(salt ^ Math.imul(this.first + offset, 0x9e3779b1)) / 2 ** 32;
    return (3 * drift + noise) / 4;
  }
}
