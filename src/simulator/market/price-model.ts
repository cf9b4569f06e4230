import { hashNumbers, mixBits } from "./hash.ts";

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

/** A day is divided into at most this many halvings. */
export const MAX_DAY_LEVEL = 6;
/** The slowest movement of a price has a period of this many doublings of a day. */
const MAX_PERIOD_LEVEL = 9;

/** Each cell multiplies the volatility of its parent by one of these: there are calm and volatile hours. */
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
}

/** The level of the hashes of last ticks: the parts of a day have higher ones. */
const LAST_TICK_LEVEL = 0;

export type PriceModel = ReturnType<typeof createPriceModel>;

/**
 * Models the logarithm of USD prices. The first price of a day is a sum of movements with periods from a day to 512 days. A
 * day is divided by midpoint displacement: the middle of each cell deviates from the line between its ends by a hash.
 */
export function createPriceModel(seed: number, tickMs: number, parameters: readonly PriceParameters[]) {
  const paths = parameters.map((each, asset) => createPricePath(each, hashNumbers(seed, 11, asset), tickMs));
  /** The logarithms of the asset's USD price at the `segments + 1` anchors of a day. */
  return (asset: number, day: number, segments: number): Float64Array => {
    const path = paths[asset];
    if (!path) throw new RangeError(`no asset ${asset}`);
    const lastStep = path.tickDeviation * drawFromHash(hashCell(path.salt, LAST_TICK_LEVEL, day));
    const anchors = new Float64Array(segments + 1);
    anchors[0] = computeOpen(path, day);
    anchors[segments] = computeOpen(path, day + 1) + lastStep;
    /** Sets the values between the first and the last of a cell, which is one of its level. */
    const divide = (start: number, width: number, level: number, cell: number, parentVolatility: number) => {
      if (width < 2) return;
      const half = width >> 1;
      const hash = hashCell(path.salt, level, cell);
      const volatility = parentVolatility * (VOLATILITY_FACTORS[hash & 255] as number);
      const middle = ((anchors[start] as number) + (anchors[start + width] as number)) / 2;
      anchors[start + half] = middle + (path.deviation[level] as number) * volatility * drawFromHash(hash);
      divide(start, half, level - 1, cell << 1, volatility);
      divide(start + half, half, level - 1, (cell << 1) + 1, volatility);
    };
    divide(0, segments, MAX_DAY_LEVEL, day, 1);
    return anchors;
  };
}

function computeOpen({ salt, baseLog, logGrowthPerDay, deviation }: PricePath, day: number): number {
  let log = baseLog + logGrowthPerDay * day;
  for (let level = MAX_DAY_LEVEL; level <= MAX_DAY_LEVEL + MAX_PERIOD_LEVEL; level++) {
    const at = day / 2 ** (level - MAX_DAY_LEVEL);
    const cell = Math.floor(at);
    // The parts of the day have the levels up to `MAX_DAY_LEVEL`.
    const left = drawFromHash(hashCell(salt, level + 1, cell));
    const right = drawFromHash(hashCell(salt, level + 1, cell + 1));
    log += (deviation[level] as number) * (left + (right - left) * (at - cell));
  }
  return log;
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
    deviation: Float64Array.from({ length: MAX_DAY_LEVEL + MAX_PERIOD_LEVEL + 1 }, (_, at) => {
      return deviationOver(2 ** (at - MAX_DAY_LEVEL)) / 2;
    }),
    tickDeviation: deviationOver(tickMs / 86_400_000),
  };
}

function hashCell(salt: number, level: number, cell: number): number {
  return mixBits(salt ^ Math.imul(cell, 0x9e3779b1) ^ Math.imul(level, 0x85ebca6b));
}

function drawFromHash(hash: number): number {
  return ((hash >>> 20) + ((hash >>> 8) & 0xfff) - 4095) * DRAW_UNIT;
}
