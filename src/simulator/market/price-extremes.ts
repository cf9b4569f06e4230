import { drawFromHash, hashCell, type PricePath, VOLATILITY_FACTORS } from "./price-path.ts";

/** Level of the first, coarse pass. Its extremes let the exact pass skip most cells. */
const COARSE_LEVEL = 6;

/** A cell of the price path: the values at its two ends, and the volatility inherited from its parent. */
export interface Cell {
  readonly start: number;
  readonly end: number;
  readonly volatility: number;
}

export interface Extremes {
  readonly high: number;
  readonly low: number;
}

/** A stack of cells to search, six numbers each: left, right and volatility of the base, then of the quote. */
const SLOT_SIZE = 6;
const MAX_DEPTH = 64;
const values = new Float64Array(MAX_DEPTH * SLOT_SIZE);
const starts = new Float64Array(MAX_DEPTH);
const levels = new Int32Array(MAX_DEPTH);

/** The quote path of an index that is priced in USD. */
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
 * Finds the exact highest and lowest tick of [first, end) without reading every tick. It skips a cell when its ends,
 * widened by the largest possible excursion inside it, stay within the extremes found so far.
 */
export class ExtremeSearch {
  readonly #base: PricePath;
  readonly #quote: PricePath;
  readonly #first: number;
  readonly #end: number;
  #found: Extremes = { high: Number.NEGATIVE_INFINITY, low: Number.POSITIVE_INFINITY };

  /** Searches the difference of the base and the quote path. */
  constructor(base: PricePath, quote: PricePath | undefined, first: number, end: number) {
    this.#base = base;
    this.#quote = quote ?? flatPath;
    this.#first = first;
    this.#end = end;
  }

  /** `cells` are consecutive, have this level, begin at tick `start`, and together cover [first, end). */
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

  /** Starts from the one cell on the stack. A loop, because a function call per cell costs more than the cell. */
  #searchCell(bottom: number, { high, low }: Extremes): Extremes {
    const { salt, baseLog, logGrowthPerTick, deviation, maxExcursion } = this.#base;
    const quote = this.#quote;
    const hasQuote = quote !== flatPath;
    const first = this.#first;
    const end = this.#end;
    let highest = high;
    let lowest = low;
    for (let top = 0; top >= 0; ) {
      const level = levels[top] as number;
      const start = starts[top] as number;
      const slot = top * SLOT_SIZE;
      top--;
      const cellTicks = 1 << level;
      if (start >= end || start + cellTicks <= first) continue;
      const left = values[slot] as number;
      const right = values[slot + 1] as number;
      const volatility = values[slot + 2] as number;
      const quoteLeft = values[slot + 3] as number;
      const quoteRight = values[slot + 4] as number;
      const quoteVolatility = values[slot + 5] as number;
      // The same arithmetic as in PriceModel, so that an extreme equals its tick to the last bit.
      let leftLog = baseLog + logGrowthPerTick * start + left;
      if (hasQuote) leftLog -= quote.baseLog + quote.logGrowthPerTick * start + quoteLeft;
      if (start >= first) {
        if (leftLog > highest) highest = leftLog;
        if (leftLog < lowest) lowest = leftLog;
      }
      if (level === bottom) continue;
      const rightLog =
        baseLog +
        logGrowthPerTick * (start + cellTicks) +
        right -
        (quote.baseLog + quote.logGrowthPerTick * (start + cellTicks) + quoteRight);
      // Slightly more than the sum, so that rounding never skips an extreme.
      const excursion =
        volatility * (maxExcursion[level] as number) +
        quoteVolatility * (quote.maxExcursion[level] as number) +
        1e-12;
      if (
        (leftLog > rightLog ? leftLog : rightLog) + excursion < highest &&
        (leftLog > rightLog ? rightLog : leftLog) - excursion > lowest
      )
        continue;

      const half = cellTicks >> 1;
      const cell = (start / cellTicks) | 0;
      const hash = hashCell(salt, level, cell);
      const innerVolatility = volatility * (VOLATILITY_FACTORS[hash & 255] as number);
      const middle = (left + right) / 2 + (deviation[level] as number) * innerVolatility * drawFromHash(hash);
      let quoteInnerVolatility = 0;
      let quoteMiddle = 0;
      if (hasQuote) {
        const quoteHash = hashCell(quote.salt, level, cell);
        quoteInnerVolatility = quoteVolatility * (VOLATILITY_FACTORS[quoteHash & 255] as number);
        const quoteDeviation =
          (quote.deviation[level] as number) * quoteInnerVolatility * drawFromHash(quoteHash);
        quoteMiddle = (quoteLeft + quoteRight) / 2 + quoteDeviation;
      }
      // The left half replaces the cell on the stack; the right half goes on top.
      levels[top + 1] = level - 1;
      levels[top + 2] = level - 1;
      starts[top + 2] = start + half;
      values[slot + 1] = middle;
      values[slot + 2] = innerVolatility;
      values[slot + 4] = quoteMiddle;
      values[slot + 5] = quoteInnerVolatility;
      values[slot + 6] = middle;
      values[slot + 7] = right;
      values[slot + 8] = innerVolatility;
      values[slot + 9] = quoteMiddle;
      values[slot + 10] = quoteRight;
      values[slot + 11] = quoteInnerVolatility;
      top += 2;
    }
    return { high: highest, low: lowest };
  }
}
