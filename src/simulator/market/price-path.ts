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

const YEAR_MS = 31_557_600_000;
const REFERENCE_MS = Date.UTC(2026, 0, 1);
/** Scales the sum of two uniform 12-bit draws to unit variance: bounded and bell-shaped. */
const DRAW_UNIT = Math.sqrt(6) / 4095;

/** Each cell multiplies the volatility of its parent by one of these. Over twenty levels this produces calm and volatile weeks. */
export const VOLATILITY_FACTORS = Float64Array.from(
  { length: 256 },
  (_, at) => Math.exp((at / 255 - 0.5) * 0.46) / 1.009,
);

const MAX_DRAW = 4095 * DRAW_UNIT;
const MAX_VOLATILITY_FACTOR = VOLATILITY_FACTORS[255] ?? 1;

/** The price path of one asset, as precomputed coefficients. */
export interface PricePath {
  readonly salt: number;
  readonly baseLog: number;
  readonly logGrowthPerTick: number;
  /** Standard deviation of a cell's middle, by level (a cell of level L has 2^L ticks). */
  readonly deviation: Float64Array;
  /** By level: how far a price inside a cell can lie beyond its ends, in units of the cell's volatility. */
  readonly maxExcursion: Float64Array;
  /** Standard deviation of the values at the ends of the largest cells. */
  readonly endDeviation: number;
}

export function createPricePath(
  parameters: PriceParameters,
  salt: number,
  tickMs: number,
  topLevel: number,
): PricePath {
  const years = (level: number) =>
    Math.min((2 ** level * tickMs) / YEAR_MS, parameters.meanReversionDays / 365.25);
  const deviation = Float64Array.from({ length: topLevel + 1 }, (_, level) => {
    return (parameters.yearlyVolatility * Math.sqrt(years(level))) / 2;
  });
  const maxExcursion = new Float64Array(topLevel + 1);
  for (let level = 1; level <= topLevel; level++)
    maxExcursion[level] =
      MAX_VOLATILITY_FACTOR * ((deviation[level] ?? 0) * MAX_DRAW + (maxExcursion[level - 1] ?? 0));
  const logGrowthPerTick = (parameters.yearlyGrowth * tickMs) / YEAR_MS;
  return {
    salt,
    logGrowthPerTick,
    baseLog: Math.log(parameters.usd) - (logGrowthPerTick * REFERENCE_MS) / tickMs,
    deviation,
    maxExcursion,
    endDeviation: parameters.yearlyVolatility * Math.sqrt(years(topLevel)) * 0.4,
  };
}

export function hashCell(salt: number, level: number, cell: number): number {
  return mixBits(salt ^ Math.imul(cell, 0x9e3779b1) ^ Math.imul(level, 0x85ebca6b));
}

export function drawFromHash(hash: number): number {
  return ((hash >>> 20) + ((hash >>> 8) & 0xfff) - 4095) * DRAW_UNIT;
}
