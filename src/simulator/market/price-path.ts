import { mixBits } from "./hash.ts";

/** What sets one asset's price path apart from another's. */
export interface PriceParameters {
  /** Typical USD price at the beginning of 2026. */
  readonly usd: number;
  /** Standard deviation of the logarithm over a year. */
  readonly yearlyVolatility: number;
  /** Growth of the logarithm per year. */
  readonly yearlyGrowth: number;
  /** Days after which the price has forgotten where it was: short for what is pegged to a currency. */
  readonly meanReversionDays: number;
}

const YEAR_MS = 31_557_600_000;
const REFERENCE_MS = Date.UTC(2026, 0, 1);
/** The deviation of a cell's middle is the sum of two even draws: bounded, bell-like, unit variance. */
const DRAW_UNIT = Math.sqrt(6) / 4095;

/** Each cell is a little calmer or wilder than the one that holds it; over twenty levels this makes calm and wild weeks. */
export const VOLATILITY_FACTORS = Float64Array.from(
  { length: 256 },
  (_, at) => Math.exp((at / 255 - 0.5) * 0.46) / 1.009,
);

/** The most that a draw and a step of the temper can come to. */
export const MAX_DRAW = 4095 * DRAW_UNIT;
export const MAX_VOLATILITY_FACTOR = VOLATILITY_FACTORS[255] ?? 1;

/** One asset's path: what its draws are made of. */
export interface PricePath {
  readonly salt: number;
  readonly baseLog: number;
  readonly logGrowthPerTick: number;
  /** Deviation of a cell's middle, by level (a cell of level L spans 2^L ticks). */
  readonly deviation: Float64Array;
  /** By level: the most that a cell's inside can lie beyond its ends, in units of its temper. */
  readonly maxExcursion: Float64Array;
  /** Deviation of the values between the largest cells. */
  readonly endDeviation: number;
}

export function createPricePath(
  shape: PriceParameters,
  salt: number,
  tickMs: number,
  topLevel: number,
): PricePath {
  const years = (level: number) =>
    Math.min((2 ** level * tickMs) / YEAR_MS, shape.meanReversionDays / 365.25);
  const deviation = Float64Array.from({ length: topLevel + 1 }, (_, level) => {
    return (shape.yearlyVolatility * Math.sqrt(years(level))) / 2;
  });
  const reach = new Float64Array(topLevel + 1);
  for (let level = 1; level <= topLevel; level++)
    reach[level] = MAX_VOLATILITY_FACTOR * ((deviation[level] ?? 0) * MAX_DRAW + (reach[level - 1] ?? 0));
  const perTick = (shape.yearlyGrowth * tickMs) / YEAR_MS;
  return {
    salt,
    logGrowthPerTick: perTick,
    baseLog: Math.log(shape.usd) - (perTick * REFERENCE_MS) / tickMs,
    deviation,
    maxExcursion: reach,
    endDeviation: shape.yearlyVolatility * Math.sqrt(years(topLevel)) * 0.4,
  };
}

export function hashCell(salt: number, level: number, cell: number): number {
  return mixBits(salt ^ Math.imul(cell, 0x9e3779b1) ^ Math.imul(level, 0x85ebca6b));
}

export function drawFromHash(hash: number): number {
  return ((hash >>> 20) + ((hash >>> 8) & 0xfff) - 4095) * DRAW_UNIT;
}
