import type { Clock } from "../runtime/clock.ts";

const CAPACITY = 20;
const REFILL_MS = 20_000;
const EARNED_BY_SUCCESS = 0.2;

/**
 * How many second tries the service is asked to bear, over all streams. While half of the answers fail, the
 * breaker never opens; without a budget every failure would multiply itself.
 */
export class RetryBudget {
  readonly #clock: Clock;
  #tokens = CAPACITY;
  #countedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.monotonic();
  }

  earn(): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + EARNED_BY_SUCCESS);
  }

  /** Books one retry and says how long it must wait for its turn: 0 while the budget lasts. */
  take(): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(CAPACITY, this.#tokens + (now - this.#countedAt) / REFILL_MS);
    this.#countedAt = now;
    this.#tokens = Math.max(-CAPACITY, this.#tokens - 1);
    return this.#tokens >= 0 ? 0 : -this.#tokens * REFILL_MS;
  }
}
