import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "./instant.ts";

const minutes = (n: number): Micros => n * 60 * MICROS_PER_SECOND;

/** The lengths of bars that there is a view of, `bars_1m` and so on. */
export const barLengths = {
  "1m": minutes(1),
  "5m": minutes(5),
  "15m": minutes(15),
  "1h": minutes(60),
  "4h": minutes(240),
  "1d": MICROS_PER_DAY,
} as const satisfies Record<string, Micros>;

export type BarLength = keyof typeof barLengths;
