import { hashNumbers } from "./hash.ts";
import { type Cell, ExtremeSearch, type Extremes } from "./price-extremes.ts";
import {
  createPricePath,
  drawFromHash,
  hashCell,
  type PriceParameters,
  type PricePath,
  VOLATILITY_FACTORS,
} from "./price-path.ts";

const YEAR_MS = 31_557_600_000;
const BLOCK_LEVEL = 12;
const BLOCK_TICKS = 1 << BLOCK_LEVEL;
const MAX_CACHED_BLOCKS = 768;

/**
 * Models the logarithm of USD prices by midpoint displacement: the middle of each dyadic cell of time deviates from the
 * line between its ends by a hash of the cell. A single tick descends some twenty cells; a block of 4096 costs one hash
 * per tick. Both do the same arithmetic in the same order, so their results are equal to the last bit.
 */
export class PriceModel {
  readonly #paths: readonly PricePath[];
  readonly #topLevel: number;
  readonly #blocks = new Map<number, Float64Array>();
  /** Scratch memory of #computeBlock: the volatility of the cell that begins at each tick. */
  readonly #volatilities = new Float64Array(BLOCK_TICKS);

  constructor(seed: number, tickMs: number, parameters: readonly PriceParameters[]) {
    this.#topLevel = Math.max(BLOCK_LEVEL, Math.ceil(Math.log2((1.5 * YEAR_MS) / tickMs)));
    this.#paths = parameters.map((each, asset) =>
      createPricePath(each, hashNumbers(seed, 11, asset), tickMs, this.#topLevel),
    );
  }

  /** The logarithm of the asset's USD price at one tick. */
  logPriceAt(asset: number, tick: number): number {
    const cached = this.#blocks.get(blockKey(asset, Math.floor(tick / BLOCK_TICKS)));
    if (cached) return cached[tick % BLOCK_TICKS] ?? 0;
    const path = this.#path(asset);
    return path.baseLog + path.logGrowthPerTick * tick + this.#descend(path, tick, 0).start;
  }

  /** The logarithms of the 4096 ticks of the block that contains `tick`; `tick % 4096` is its index there. */
  block(asset: number, tick: number): Float64Array {
    const number = Math.floor(tick / BLOCK_TICKS);
    const key = blockKey(asset, number);
    const cached = this.#blocks.get(key);
    if (cached) return cached;
    const computed = this.#computeBlock(this.#path(asset), number);
    if (this.#blocks.size >= MAX_CACHED_BLOCKS) {
      const oldest = this.#blocks.keys().next();
      if (!oldest.done) this.#blocks.delete(oldest.value);
    }
    this.#blocks.set(key, computed);
    return computed;
  }

  /** The highest and lowest logarithm of the base's price in the quote (undefined: USD) over the ticks [first, end). */
  extremes(base: number, quote: number | undefined, first: number, end: number): Extremes {
    const basePath = this.#path(base);
    const quotePath = quote === undefined ? undefined : this.#path(quote);
    const start = first - (first % BLOCK_TICKS);
    const cells = Array.from({ length: Math.ceil((end - start) / BLOCK_TICKS) }, (_, at) => ({
      base: this.#descend(basePath, start + at * BLOCK_TICKS, BLOCK_LEVEL),
      quote: quotePath && this.#descend(quotePath, start + at * BLOCK_TICKS, BLOCK_LEVEL),
    }));
    return new ExtremeSearch(basePath, quotePath, first, end).search(BLOCK_LEVEL, start, cells);
  }

  #path(asset: number): PricePath {
    const path = this.#paths[asset];
    if (!path) throw new RangeError(`no asset ${asset}`);
    return path;
  }

  /** Descends through the cells that contain `tick` to the one at level `bottom`. */
  #descend(path: PricePath, tick: number, bottom: number): Cell {
    let cell = Math.floor(tick / 2 ** this.#topLevel);
    let left = path.endDeviation * drawFromHash(hashCell(path.salt, this.#topLevel + 1, cell));
    let right = path.endDeviation * drawFromHash(hashCell(path.salt, this.#topLevel + 1, cell + 1));
    let volatility = 1;
    for (let level = this.#topLevel; level > bottom; level--) {
      const hash = hashCell(path.salt, level, cell);
      volatility *= VOLATILITY_FACTORS[hash & 255] ?? 1;
      const middle = (left + right) / 2 + (path.deviation[level] ?? 0) * volatility * drawFromHash(hash);
      const half = 2 ** (level - 1);
      const upper = Math.floor(tick / half) % 2 === 1;
      if (upper) left = middle;
      else right = middle;
      cell = cell * 2 + (upper ? 1 : 0);
    }
    return { start: left, end: right, volatility };
  }

  #computeBlock(path: PricePath, number: number): Float64Array {
    const first = number * BLOCK_TICKS;
    const whole = this.#descend(path, first, BLOCK_LEVEL);
    const values = new Float64Array(BLOCK_TICKS + 1);
    const volatilities = this.#volatilities;
    values[0] = whole.start;
    values[BLOCK_TICKS] = whole.end;
    volatilities[0] = whole.volatility;
    for (let level = BLOCK_LEVEL; level > 0; level--) fillLevel(path, level, first, values, volatilities);
    for (let at = 0; at < BLOCK_TICKS; at++)
      values[at] = path.baseLog + path.logGrowthPerTick * (first + at) + (values[at] as number);
    return values;
  }
}

/** Sets the middle of each cell of one level. A hot loop: `| 0` keeps the cell number a small integer. */
function fillLevel(
  path: PricePath,
  level: number,
  first: number,
  values: Float64Array,
  volatilities: Float64Array,
): void {
  const cellTicks = 1 << level;
  const half = cellTicks >> 1;
  const salt = path.salt | 0;
  const deviation = path.deviation[level] ?? 0;
  let cell = (first / cellTicks) | 0;
  let left = values[0] as number;
  for (let start = 0; start < BLOCK_TICKS; start += cellTicks) {
    const hash = hashCell(salt, level, cell);
    const volatility = (volatilities[start] as number) * (VOLATILITY_FACTORS[hash & 255] as number);
    const right = values[start + cellTicks] as number;
    values[start + half] = (left + right) / 2 + deviation * volatility * drawFromHash(hash);
    volatilities[start] = volatility;
    volatilities[start + half] = volatility;
    left = right;
    cell = (cell + 1) | 0;
  }
}

function blockKey(asset: number, block: number): number {
  return asset * 2 ** 24 + block;
}
