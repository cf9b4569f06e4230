import { backoffDelay, type Random } from "../../runtime/backoff.ts";

/** Retries that each success pays for: they are at most nine requests in ten. */
const RETRIES_PER_SUCCESS = 9;
const MAX_RETRIES = 30;
/** Isolated failures: the next attempt probably succeeds. */
const FAST_BACKOFF = { baseMs: 10, maxMs: 160 };
/** Nearly everything fails. */
const SLOW_BACKOFF = { baseMs: 1_000, maxMs: 60_000 };
/** A snapshot must not miss its period because history has spent the budget. */
const URGENT_BACKOFF = { baseMs: 500, maxMs: 5_000 };

/**
 * Bounds retries as a fraction of all requests, not their number per time: retries wait only milliseconds while successes pay
 * for them, and back off to a minute when hardly any request succeeds.
 */
export class RetryBudget {
  readonly #random: Random;
  #available = MAX_RETRIES;

  constructor(random: Random) {
    this.#random = random;
  }

  recordSuccess(): void {
    this.#available = Math.min(MAX_RETRIES, this.#available + RETRIES_PER_SUCCESS);
  }

  /** Takes one retry from the budget and returns how long it must wait. `retries`: of the same request so far. */
  spend(retries: number, { isSlow = false, isUrgent = false } = {}): number {
    const isPaid = this.#available >= 1;
    if (isPaid) this.#available--;
    const unpaid = isUrgent && !isSlow ? URGENT_BACKOFF : SLOW_BACKOFF;
    return backoffDelay(retries, isPaid && !isSlow ? FAST_BACKOFF : unpaid, this.#random);
  }
}
