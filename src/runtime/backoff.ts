/** Uniform in [0, 1), like Math.random. Injected, so that tests can seed it. */
export type Random = () => number;

/** A small seeded generator (mulberry32): the same seed gives the same run. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface BackoffOptions {
  /** The upper limit of the first delay. */
  baseMs: number;
  /** The upper limit of every delay. */
  maxMs: number;
  /** The random part of a delay. 1, the default, is full jitter: any delay from zero to the upper limit. */
  jitter?: number;
}

/** Capped exponential backoff with jitter: attempt 0 waits up to `baseMs`, each further one up to twice as long. */
export function backoffDelay(
  attempt: number,
  { baseMs, maxMs, jitter = 1 }: BackoffOptions,
  random: Random,
): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 52));
  return ceiling * (1 - jitter + jitter * random());
}
