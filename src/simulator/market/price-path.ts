import { mixBits } from "./hash.ts";

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
export const BLOCK_LEVEL = 9;
export const BLOCK_DAYS = 1 << BLOCK_LEVEL;
export const MAX_DAY_LEVEL = 6;

/** Each cell multiplies the volatility of its parent by one of these. Over fifteen levels this produces calm and volatile weeks. */
export const VOLATILITY_FACTORS = Float64Array.from(
  { length: 256 },
  (_, at) => Math.exp((at / 255 - 0.5) * 0.46) / 1.009,
);

/** The price path of one asset, as precomputed coefficients. */
export interface PricePath {
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

export function createPricePath(parameters: PriceParameters, salt: number, tickMs: number): PricePath {
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

export function hashCell(salt: number, level: number, cell: number): number {
  return mixBits(salt ^ Math.imul(cell, 0x9e3779b1) ^ Math.imul(level, 0x85ebca6b));
}

export function drawFromHash(hash: number): number {
  return ((hash >>> 20) + ((hash >>> 8) & 0xfff) - 4095) * DRAW_UNIT;
}
