import { DAY_MS } from "./format.ts";
import { hashNumbers, mixBits } from "./hash.ts";
import { drawFromHash, MAX_DAY_LEVEL } from "./price-model.ts";

/** How the ticks of a day are divided into segments. The first and the last tick of each segment are anchors. */
export interface DayGrid {
  readonly first: number;
  readonly count: number;
  /** A power of two, at most the number of ticks after the first, so that every anchor has a tick of its own. */
  readonly segments: number;
  /** By anchor: its tick, counted from the first. `segments + 1` of them; the last is the last tick of the day. */
  readonly anchorOffsets: Int32Array;
  /** By tick, counted from the first: the segment that it is in. */
  readonly segmentOf: Uint8Array;
}

/** How the price moves from one anchor to the next. */
interface SegmentShape {
  /** For each tick of the segment, its fraction of the way. The first is 0. */
  readonly fractions: Float64Array;
  /** At k, the sum of the k-th powers of the fractions, divided by k!: the sum of exp(d × fraction) as a series in d. */
  readonly powerSums: Float64Array;
}

const SHAPES = 128;
/** The series is exact to twelve digits with six terms for a small difference, and with all of them for any other. */
const SERIES_TERMS = 16;
const SMALL_DIFFERENCE = 0.02;
/** No tick between two anchors reaches either of them, so that rounding never puts one beyond an anchor. */
const SHAPE_MARGIN = 0.001;

/**
 * Divides days into segments, and moves the prices between two anchors. All assets share this movement: a tick lies at
 * the same fraction of the way from anchor to anchor for each of them. So the ratio of two prices also lies between its
 * anchors, and the highest and the lowest price of every index in a day are those of anchors.
 */
export class DayGrids {
  readonly #tickMs: number;
  readonly #salt: number;
  readonly #divisions = new Map<number, Pick<DayGrid, "segments" | "anchorOffsets" | "segmentOf">>();
  readonly #shapes = new Map<number, readonly SegmentShape[]>();

  constructor(seed: number, tickMs: number) {
    this.#tickMs = tickMs;
    this.#salt = hashNumbers(seed, 12);
  }

  dayOf(tick: number): number {
    return Math.floor((tick * this.#tickMs) / DAY_MS);
  }

  of(day: number): DayGrid {
    const first = Math.ceil((day * DAY_MS) / this.#tickMs);
    const count = Math.ceil(((day + 1) * DAY_MS) / this.#tickMs) - first;
    return { first, count, ...this.#division(count) };
  }

  shape(day: number, segment: number, { anchorOffsets }: DayGrid): SegmentShape {
    const ticks = (anchorOffsets[segment + 1] ?? 0) - (anchorOffsets[segment] ?? 0);
    const cell = (day << MAX_DAY_LEVEL) + segment;
    const shapes = this.#shapes.get(ticks) ?? this.#createShapes(ticks);
    return shapes[mixBits(this.#salt ^ Math.imul(cell, 0x9e3779b1)) % SHAPES] as SegmentShape;
  }

  #division(count: number) {
    const known = this.#divisions.get(count);
    if (known) return known;
    const segments = count < 2 ? 0 : 1 << Math.min(MAX_DAY_LEVEL, Math.floor(Math.log2(count - 1)));
    const anchorOffsets = Int32Array.from({ length: segments + 1 }, (_, at) => {
      return Math.floor((at * (count - 1)) / segments);
    });
    const segmentOf = new Uint8Array(count);
    for (let segment = 0; segment <= segments; segment++) segmentOf.fill(segment, anchorOffsets[segment]);
    const division = { segments, anchorOffsets, segmentOf };
    this.#divisions.set(count, division);
    return division;
  }

  #createShapes(ticks: number): readonly SegmentShape[] {
    const shapes = Array.from({ length: SHAPES }, (_, at) => {
      const fractions = createFractions(mixBits(this.#salt + at), ticks);
      return { fractions, powerSums: sumPowers(fractions) };
    });
    this.#shapes.set(ticks, shapes);
    return shapes;
  }
}

/** A random walk from 0 to 1 that is reflected at both. */
function createFractions(salt: number, ticks: number): Float64Array {
  const walk = new Float64Array(ticks + 1);
  walk[ticks] = 1;
  const fill = (from: number, to: number) => {
    if (to - from < 2) return;
    const middle = (from + to) >> 1;
    const draw = drawFromHash(mixBits(salt ^ Math.imul(middle, 0x85ebca6b)));
    const between = ((walk[from] as number) + (walk[to] as number)) / 2;
    walk[middle] = between + (Math.sqrt((to - from) / ticks) / 2) * draw;
    fill(from, middle);
    fill(middle, to);
  };
  fill(0, ticks);
  return walk.subarray(0, Math.max(1, ticks)).map((value, at) => {
    if (at === 0) return 0;
    const folded = Math.abs(value) % 2;
    return SHAPE_MARGIN + (1 - 2 * SHAPE_MARGIN) * (folded > 1 ? 2 - folded : folded);
  });
}

function sumPowers(fractions: Float64Array): Float64Array {
  const terms = fractions.map(() => 1);
  return Float64Array.from({ length: SERIES_TERMS }, (_, power) => {
    if (power > 0)
      for (const [at, fraction] of fractions.entries())
        terms[at] = ((terms[at] as number) * fraction) / power;
    return terms.reduce((sum, term) => sum + term, 0);
  });
}

/** The sum of exp(difference × fraction) over the ticks of a segment. */
export function sumExponentials({ powerSums }: SegmentShape, difference: number): number {
  let sum = 0;
  for (let at = Math.abs(difference) < SMALL_DIFFERENCE ? 5 : SERIES_TERMS - 1; at >= 0; at--)
    sum = sum * difference + (powerSums[at] as number);
  return sum;
}
