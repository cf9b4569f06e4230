import { formatInstant, MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../model/instant.ts";

export type WalkedEndpoint = "/index-ticker" | "/ohlcv";

/**
 * The earliest timestamp that surely finds the row of this moment: even if the service takes the bound as exclusive,
 * and even if it compares it with the end of a bar.
 */
export function momentThatFinds(endpoint: WalkedEndpoint, row: Micros): Micros {
  return upToMillisecond(row + 1) + (endpoint === "/ohlcv" ? MICROS_PER_DAY : 0);
}

export function downToMillisecond(moment: Micros): Micros {
  return Math.floor(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

export function upToMillisecond(moment: Micros): Micros {
  return Math.ceil(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

/** Three digits of a second, which every reader of ISO 8601 takes. */
export function formatMillisecond(moment: Micros): string {
  return `${formatInstant(moment).slice(0, 23)}Z`;
}
