import { drawFromHash, hashCell, type PricePath, VOLATILITY_FACTORS } from "./price-path.ts";

/** How fine the first look is: it gives the search good extremes to begin with. */
const COARSE_LEVEL = 6;

/** What a cell begins with: the values at its ends, and the temper of the cell that holds it. */
export interface Cell {
  readonly start: number;
  readonly end: number;
  readonly volatility: number;
}

export interface Extremes {
  readonly high: number;
  readonly low: number;
}

/** The stack of cells still to be looked at: six figures each (left, right, temper, and the quote's). */
const SLOT_SIZE = 6;
const MAX_DEPTH = 64;
const values = new Float64Array(MAX_DEPTH * SLOT_SIZE);
const starts = new Float64Array(MAX_DEPTH);
const levels = new Int32Array(MAX_DEPTH);

/** Stands in for the quote of what is priced in USD. */
const flatPath: PricePath = {
  salt: 0,
  baseLog: 0,
  logGrowthPerTick: 0,
  deviation: new Float64Array(MAX_DEPTH),
  maxExcursion: new Float64Array(MAX_DEPTH),
  endDeviation: 0,
};
const flatCell: Cell = { start: 0, end: 0, volatility: 0 };

/**
 * The highest and the lowest tick of [first, end), exactly, without looking at all of them: a cell whose ends, widened
 * by the most that its inner draws can add, stay between the extremes found so far holds none.
 */
export class ExtremeSearch {
  readonly #base: PricePath;
  readonly #quote: PricePath;
  readonly #first: number;
  readonly #end: number;
  #found: Extremes = { high: Number.NEGATIVE_INFINITY, low: Number.POSITIVE_INFINITY };

  /** Over the base's path, less the quote's. */
  constructor(base: PricePath, quote: PricePath | undefined, first: number, end: number) {
    this.#base = base;
    this.#quote = quote ?? flatPath;
    this.#first = first;
    this.#end = end;
  }

  /** `cells` of this level, in a row from tick `start` on, hold the run between them. */
  search(level: number, start: number, cells: readonly { base: Cell; quote: Cell | undefined }[]): Extremes {
    for (const bottom of [COARSE_LEVEL, 0]) {
      for (const [at, { base, quote = flatCell }] of cells.entries()) {
        values.set([base.start, base.end, base.volatility, quote.start, quote.end, quote.volatility]);
        starts[0] = start + at * 2 ** level;
        levels[0] = level;
        this.#found = this.#searchCell(bottom, this.#found);
      }
    }
    return this.#found;
  }

  /** Works off the stack, on which one cell lies. Hot: a call per cell would cost more than the cell itself. */
  #searchCell(bottom: number, { high, low }: Extremes): Extremes {
    const { salt, baseLog: base, logGrowthPerTick: perTick, deviation, maxExcursion: reach } = this.#base;
    const quote = this.#quote;
    const quoted = quote !== flatPath;
    const first = this.#first;
    const end = this.#end;
    let highest = high;
    let lowest = low;
    for (let top = 0; top >= 0; ) {
      const level = levels[top] as number;
      const start = starts[top] as number;
      const slot = top * SLOT_SIZE;
      top--;
      const span = 1 << level;
      if (start >= end || start + span <= first) continue;
      const left = values[slot] as number;
      const right = values[slot + 1] as number;
      const temper = values[slot + 2] as number;
      const quoteLeft = values[slot + 3] as number;
      const quoteRight = values[slot + 4] as number;
      const quoteTemper = values[slot + 5] as number;
      // The very arithmetic of the model, so that an extreme equals its tick to the last bit.
      let near = base + perTick * start + left;
      if (quoted) near -= quote.baseLog + quote.logGrowthPerTick * start + quoteLeft;
      if (start >= first) {
        if (near > highest) highest = near;
        if (near < lowest) lowest = near;
      }
      if (level === bottom) continue;
      const far =
        base +
        perTick * (start + span) +
        right -
        (quote.baseLog + quote.logGrowthPerTick * (start + span) + quoteRight);
      // A hair more than the sum, so that rounding never rules out an extreme.
      const beyond =
        temper * (reach[level] as number) + quoteTemper * (quote.maxExcursion[level] as number) + 1e-12;
      if ((near > far ? near : far) + beyond < highest && (near > far ? far : near) - beyond > lowest)
        continue;

      const half = span >> 1;
      const cell = (start / span) | 0;
      const hash = hashCell(salt, level, cell);
      const inner = temper * (VOLATILITY_FACTORS[hash & 255] as number);
      const middle = (left + right) / 2 + (deviation[level] as number) * inner * drawFromHash(hash);
      let quoteInner = 0;
      let quoteMiddle = 0;
      if (quoted) {
        const quoteHash = hashCell(quote.salt, level, cell);
        quoteInner = quoteTemper * (VOLATILITY_FACTORS[quoteHash & 255] as number);
        const deviates = (quote.deviation[level] as number) * quoteInner * drawFromHash(quoteHash);
        quoteMiddle = (quoteLeft + quoteRight) / 2 + deviates;
      }
      // The left half takes the place of the whole, the right half lies on top of it.
      levels[top + 1] = level - 1;
      levels[top + 2] = level - 1;
      starts[top + 2] = start + half;
      values[slot + 1] = middle;
      values[slot + 2] = inner;
      values[slot + 4] = quoteMiddle;
      values[slot + 5] = quoteInner;
      values[slot + 6] = middle;
      values[slot + 7] = right;
      values[slot + 8] = inner;
      values[slot + 9] = quoteMiddle;
      values[slot + 10] = quoteRight;
      values[slot + 11] = quoteInner;
      top += 2;
    }
    return { high: highest, low: lowest };
  }
}
