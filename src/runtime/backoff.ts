import type { Random } from "./random.ts";

export interface BackoffLimits {
  /** The ceiling of the first delay. */
  baseMs: number;
  /** No delay's ceiling grows past this. */
  capMs: number;
}

/** Capped exponential backoff with full jitter: attempt 0 waits up to `baseMs`, each next one up to twice as long. */
export function backoffDelay(attempt: number, limits: BackoffLimits, random: Random): number {
  const ceiling = Math.min(limits.capMs, limits.baseMs * 2 ** Math.min(attempt, 52));
  return random() * ceiling;
}
