import { hashNumbers, mixBits } from "./hash.ts";

/** The parameters of the price path of one asset. */
export interface PriceParameters {
  /** Typical USD price at the beginning of 2026. */
  readonly usd: number;
  /** Standard deviation of the logarithm over a year. */
  readonly yearlyVolatility: number;
  /** Growth of the logarithm per year. */
  readonly yearlyGrowth: number;
  /** Days after which deviations stop growing; short for assets that are pegged to a currency. */
  readonly meanReversionDays: number;
}

const DAYS_PER_YEAR = 365.25;
const REFERENCE_DAY = Date.UTC(2026, 0, 1) / 86_400_000;
/** Scales the sum of two uniform 12-bit draws to unit variance: bounded and bell-shaped. */
const DRAW_UNIT = Math.sqrt(6) / 4095;

/** A block of days is the largest cell; a day is divided into at most this many halvings. */
const BLOCK_LEVEL = 9;
const BLOCK_DAYS = 1 << BLOCK_LEVEL;
export const MAX_DAY_LEVEL = 6;

/** Each cell multiplies the volatility of its parent by one of these. Over fifteen levels this produces calm and volatile weeks. */
const VOLATILITY_FACTORS = Float64Array.from(
  { length: 256 },
  (_, at) => Math.exp((at / 255 - 0.5) * 0.46) / 1.009,
);

/** The price path of one asset, as precomputed coefficients. */
interface PricePath {
  readonly salt: number;
  readonly baseLog: number;
  readonly logGrowthPerDay: number;
  /** Standard deviation of the middle of a cell of 2^level days, at index `MAX_DAY_LEVEL + level`. */
  readonly deviation: Float64Array;
  /** Standard deviation between the last tick of a day and the first of the next. */
  readonly tickDeviation: number;
  /** Standard deviation of the values at the ends of the largest cells. */
  readonly endDeviation: number;
}

/** The first price of each day of a block, and of the day after it; and the volatility of each day. */
interface DayBlock {
  readonly opens: Float64Array;
  readonly volatilities: Float64Array;
}

const MAX_CACHED_BLOCKS = 2048;
/** Levels of hashes: of the days and blocks, of the anchors within a day, of the last tick of a day. */
const END_LEVEL = MAX_DAY_LEVEL + BLOCK_LEVEL + 1;
const LAST_TICK_LEVEL = END_LEVEL + 1;

/** Scratch memory of `readAnchors`: the volatility of the cell that begins at each anchor. */
const anchorVolatilities = new Float64Array(1 << MAX_DAY_LEVEL);

/**
 * Models the logarithm of USD prices by midpoint displacement: the middle of each dyadic cell of time deviates from the
 * line between its ends by a hash of the cell. Blocks of 512 days are divided into days, and a day into segments.
 */
export class PriceModel {
  readonly #paths: readonly PricePath[];
  readonly #blocks = new Map<number, DayBlock>();

  constructor(seed: number, tickMs: number, parameters: readonly PriceParameters[]) {
    this.#paths = parameters.map((each, asset) =>
      createPricePath(each, hashNumbers(seed, 11, asset), tickMs),
    );
  }

  /** Writes the logarithms of the asset's USD price at the `segments + 1` anchors of a day into `anchors`. */
  readAnchors(asset: number, day: number, segments: number, anchors: Float64Array): void {
    const path = this.#path(asset);
    const { opens, volatilities } = this.#block(asset, path, Math.floor(day / BLOCK_DAYS));
    const at = day % BLOCK_DAYS;
    const volatility = volatilities[at] as number;
    const lastStep =
      path.tickDeviation * volatility * drawFromHash(hashCell(path.salt, LAST_TICK_LEVEL, day));
    anchors[0] = opens[at] as number;
    anchors[segments] = (opens[at + 1] as number) + lastStep;
    anchorVolatilities[0] = volatility;
    divide(path, MAX_DAY_LEVEL, day, segments, anchors, anchorVolatilities);
  }

  #path(asset: number): PricePath {
    const path = this.#paths[asset];
    if (!path) throw new RangeError(`no asset ${asset}`);
    return path;
  }

  #block(asset: number, path: PricePath, number: number): DayBlock {
    const key = asset * 2 ** 16 + number;
    const cached = this.#blocks.get(key);
    if (cached) return cached;
    const computed = computeBlock(path, number);
    if (this.#blocks.size >= MAX_CACHED_BLOCKS) this.#blocks.clear();
    this.#blocks.set(key, computed);
    return computed;
  }
}

function computeBlock(path: PricePath, number: number): DayBlock {
  const opens = new Float64Array(BLOCK_DAYS + 1);
  const volatilities = new Float64Array(BLOCK_DAYS);
  opens[0] = path.endDeviation * drawFromHash(hashCell(path.salt, END_LEVEL, number));
  opens[BLOCK_DAYS] = path.endDeviation * drawFromHash(hashCell(path.salt, END_LEVEL, number + 1));
  volatilities[0] = 1;
  divide(path, MAX_DAY_LEVEL + BLOCK_LEVEL, number, BLOCK_DAYS, opens, volatilities);
  for (let at = 0; at <= BLOCK_DAYS; at++)
    opens[at] = path.baseLog + path.logGrowthPerDay * (number * BLOCK_DAYS + at) + (opens[at] as number);
  return { opens, volatilities };
}

/**
 * Divides cell number `cell` of a level into `parts`: sets all values between the first and the last. A hot loop:
 * `| 0` keeps the cell number a small integer.
 */
function divide(
  path: PricePath,
  level: number,
  cell: number,
  parts: number,
  values: Float64Array,
  volatilities: Float64Array,
): void {
  const salt = path.salt | 0;
  let inner = cell | 0;
  for (let width = parts, depth = level; width > 1; width >>= 1, depth--, inner <<= 1) {
    const half = width >> 1;
    const deviation = path.deviation[depth] as number;
    let left = values[0] as number;
    for (let start = 0, at = inner; start < parts; start += width, at++) {
      const hash = hashCell(salt, depth, at);
      const volatility = (volatilities[start] as number) * (VOLATILITY_FACTORS[hash & 255] as number);
      const right = values[start + width] as number;
      values[start + half] = (left + right) / 2 + deviation * volatility * drawFromHash(hash);
      volatilities[start] = volatility;
      volatilities[start + half] = volatility;
      left = right;
    }
  }
}

function createPricePath(parameters: PriceParameters, salt: number, tickMs: number): PricePath {
  const { usd, yearlyVolatility, yearlyGrowth, meanReversionDays } = parameters;
  const deviationOver = (days: number) =>
    yearlyVolatility * Math.sqrt(Math.min(days, meanReversionDays) / DAYS_PER_YEAR);
  const logGrowthPerDay = yearlyGrowth / DAYS_PER_YEAR;
  return {
    salt,
    logGrowthPerDay,
    baseLog: Math.log(usd) - logGrowthPerDay * REFERENCE_DAY,
    deviation: Float64Array.from({ length: MAX_DAY_LEVEL + BLOCK_LEVEL + 1 }, (_, at) => {
      return deviationOver(2 ** (at - MAX_DAY_LEVEL)) / 2;
    }),
    tickDeviation: deviationOver(tickMs / 86_400_000),
    endDeviation: deviationOver(BLOCK_DAYS) * 0.4,
  };
}

function hashCell(salt: number, level: number, cell: number): number {
  return mixBits(salt ^ Math.imul(cell, 0x9e3779b1) ^ Math.imul(level, 0x85ebca6b));
}

export function drawFromHash(hash: number): number {
  return ((hash >>> 20) + ((hash >>> 8) & 0xfff) - 4095) * DRAW_UNIT;
}
