import type { Clock } from "../../runtime/clock.ts";

interface AdaptiveConcurrencyOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** Upper bound of the limit. */
  readonly maxConcurrency: number;
  readonly onChange: () => void;
}

const START_LIMIT = 2;
/** After so many successes and nothing else the limit doubles each round, until something fails. */
const MIN_START_SUCCESSES = 4;
/** Failures start a trial when this many responses at one limit have at least this share of them. */
const MIN_RESPONSES = 20;
const MIN_FAILURE_SHARE = 0.12;
/** The trial ends without a finding after this many times the expected number of responses to the next failure. */
const TRIAL_LENGTH = 3;
/** How long failures count as unrelated to the load after a trial; doubles with each such trial. */
const UNRELATED_PERIOD_MS = 60_000;
const MAX_UNRELATED_PERIOD_MS = 900_000;
/** After a failure under load the limit stays for this long, then grows by one. */
const HOLD_MS = 5_000;
/** Successful rounds before the limit grows by one, after a timeout. */
const ROUNDS_AFTER_TIMEOUT = 4;

/**
 * Learns how many requests at once the service bears. If many fail, one at a time is tried: if the failures stop, the load
 * caused them, and the limit grows from one until they return; if not, they are unrelated, and the limit is restored.
 */
export class AdaptiveConcurrency {
  readonly #options: AdaptiveConcurrencyOptions;
  #limit: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  /** Responses to requests that started at the present limit. */
  #counts = { responses: 0, failures: 0 };
  #roundsPerIncrease = 1;
  /** Successes so far; undefined: a request has failed or was rejected. */
  #startSuccesses: number | undefined = 0;
  /** One request at a time, to see whether the failures stop; the limit before it and its share of failures. */
  #trial: { readonly limit: number; readonly share: number } | undefined;
  /** The load was found to cause failures; the share of failures before that. */
  #overloadShare: number | undefined;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #unrelatedUntil = Number.NEGATIVE_INFINITY;
  #unrelatedPeriodMs = UNRELATED_PERIOD_MS;

  constructor(options: AdaptiveConcurrencyOptions) {
    this.#options = options;
    this.#limit = Math.min(START_LIMIT, options.maxConcurrency);
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Whether the limit is low because the service fails under load. */
  get isOverloaded(): boolean {
    return this.#overloadShare !== undefined;
  }

  recordSuccess(startedAt: number): void {
    this.#count(startedAt, false);
    if (this.#trial) {
      this.#decideTrial(this.#trial);
      return;
    }
    const { clock, maxConcurrency } = this.#options;
    if (clock.monotonic() < this.#heldUntil) return;
    if (this.#limit >= maxConcurrency) {
      this.#overloadShare = undefined;
      return;
    }
    if (this.#startSuccesses !== undefined) this.#startSuccesses++;
    const isStarting = (this.#startSuccesses ?? 0) > MIN_START_SUCCESSES;
    const increase = isStarting ? 1 : 1 / (this.#limit * this.#roundsPerIncrease);
    this.#setLimit(Math.min(maxConcurrency, this.#limit + increase));
  }

  /** The service answers fewer requests per second: more at once would only be rejected. */
  recordRejected(): void {
    this.#startSuccesses = undefined;
  }

  /** A request failed at the service or on the way. */
  recordFailure(startedAt: number): void {
    this.#startSuccesses = undefined;
    this.#count(startedAt, true);
    if (startedAt <= this.#changedAt) return;
    if (this.#trial) this.#decideTrial(this.#trial);
    else if (this.#overloadShare !== undefined) this.#onFailureUnderLoad(this.#overloadShare);
    else this.#startTrialIfNeeded();
  }

  /** A request timed out: fewer at once may be faster. */
  recordTimeout(startedAt: number): void {
    this.#startSuccesses = undefined;
    if (startedAt <= this.#changedAt) return;
    this.#trial = undefined;
    this.#roundsPerIncrease = ROUNDS_AFTER_TIMEOUT;
    this.#setLimit(Math.max(1, this.#limit / 2));
    // Later timeouts of requests that started before now are no new evidence, even if the limit was 1 already.
    this.#restartCount();
  }

  #startTrialIfNeeded(): void {
    const { responses, failures } = this.#counts;
    const share = failures / responses;
    if (responses < MIN_RESPONSES || share < MIN_FAILURE_SHARE || this.limit === 1) return;
    if (this.#options.clock.monotonic() < this.#unrelatedUntil) return;
    this.#trial = { limit: this.#limit, share };
    this.#setLimit(1);
  }

  #decideTrial({ limit, share }: { readonly limit: number; readonly share: number }): void {
    const { responses, failures } = this.#counts;
    if (responses === 0) return;
    if (failures / responses >= share / 2) this.#restore(limit);
    else if (responses >= TRIAL_LENGTH / share) {
      this.#trial = undefined;
      this.#overloadShare = share;
      this.#heldUntil = Number.NEGATIVE_INFINITY;
    }
  }

  #onFailureUnderLoad(share: number): void {
    const { responses, failures } = this.#counts;
    if (this.limit > 1) {
      this.#heldUntil = this.#options.clock.monotonic() + HOLD_MS;
      this.#setLimit(this.limit - 1);
      this.#restartCount();
    } else if (responses >= 3 && failures / responses >= share / 2)
      this.#restore(this.#options.maxConcurrency);
  }

  /** The failures do not depend on the load. */
  #restore(limit: number): void {
    this.#trial = undefined;
    this.#overloadShare = undefined;
    this.#unrelatedUntil = this.#options.clock.monotonic() + this.#unrelatedPeriodMs;
    this.#unrelatedPeriodMs = Math.min(2 * this.#unrelatedPeriodMs, MAX_UNRELATED_PERIOD_MS);
    this.#setLimit(limit);
  }

  #count(startedAt: number, isFailure: boolean): void {
    if (startedAt <= this.#changedAt) return;
    if (this.#counts.responses >= 10 * MIN_RESPONSES && !this.#trial)
      this.#counts = { responses: 0, failures: 0 };
    this.#counts.responses++;
    if (isFailure) this.#counts.failures++;
  }

  #setLimit(limit: number): void {
    const before = this.limit;
    this.#limit = limit;
    if (this.limit === before) return;
    // Failures of requests that started at a lower limit count against the present one, but not those from a higher one.
    if (this.limit < before) this.#restartCount();
    this.#options.onChange();
  }

  #restartCount(): void {
    this.#changedAt = this.#options.clock.monotonic();
    this.#counts = { responses: 0, failures: 0 };
  }
}
