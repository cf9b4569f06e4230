import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import { BUDGET, FAST_BACKOFF, SLOW_BACKOFF, URGENT_BACKOFF } from "../limits.ts";

/**
 * Bounds retries as a fraction of all requests, not their number per time: retries wait only milliseconds while successes pay
 * for them, and back off to a minute when hardly any request succeeds.
 */
export class RetryBudget {
  readonly #random: Random;
  #available: number = BUDGET.max;

  constructor(random: Random) {
    this.#random = random;
  }

  recordSuccess(): void {
    this.#available = Math.min(BUDGET.max, this.#available + BUDGET.perSuccess);
  }

  /** Takes one retry from the budget and returns how long it must wait. `retries`: of the same request so far. */
  spend(retries: number, { isSlow = false, isUrgent = false } = {}): number {
    const isPaid = this.#available >= 1;
    if (isPaid) this.#available--;
    const unpaid = isUrgent && !isSlow ? URGENT_BACKOFF : SLOW_BACKOFF;
    return backoffDelay(retries, isPaid && !isSlow ? FAST_BACKOFF : unpaid, this.#random);
  }
}
