/** Uniform in [0, 1), like Math.random. Injected, so that tests can seed it. */
export type Random = () => number;

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
