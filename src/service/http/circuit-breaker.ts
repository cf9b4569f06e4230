import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

const PROBE_BACKOFF = { baseMs: 5_000, maxMs: 90_000, jitter: 0.5 };

/** Re-check hourly; never set an unbounded timer. */
const MAX_WAIT_MS = 3_600_000;

/** Allows one request. The holder reports its outcome exactly once; later reports are ignored. */
export interface Permit {
  recordSuccess(): void;
  /** `pauseMs`: no request to the host may start for this long. `weight`: as how many failures it counts. */
  recordFailure(pauseMs: number, weight?: number): void;
  /** The outcome says nothing about the host. */
  release(): void;
}

export type BreakerState = "closed" | "open";

export interface CircuitBreakerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Failures in a row that open the breaker. While one request in four succeeds, forty in a row are very rare. */
  readonly failuresToOpen: number;
  /** Fewer open it too, if there was no success for `ms`: backoff makes the failures of few callers rare. */
  readonly longFailure?: { readonly failures: number; readonly ms: number };
  readonly onStateChange: (state: BreakerState) => void;
}

/**
 * Shared by all requests to one endpoint or host. After many failures in a row the breaker opens and lets one probe at a
 * time through, at growing intervals, so that an outage costs few requests.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  readonly #clock: Clock;
  readonly #waiters = new Set<() => void>();
  #pausedUntil = 0;
  #failures = 0;
  #failedProbes = 0;
  #probeAt: number | undefined;
  #isProbing = false;
  #openedAt: number | undefined;
  #failingSince: number | undefined;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Monotonic; undefined while the breaker is closed. */
  get openedAt(): number | undefined {
    return this.#openedAt;
  }

  /** The first failure since the last success (monotonic); undefined: none. */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** A request that was alone has failed too, so the load is not the cause. */
  get hasFailedProbe(): boolean {
    return this.#failedProbes > 1;
  }

  get isOpen(): boolean {
    return this.#probeAt !== undefined;
  }

  /** No request failed since the last success. */
  get isHealthy(): boolean {
    return this.#failures === 0;
  }

  /** Waits until a permit may be available; false if none is before `until` (monotonic). */
  async waitUntilAvailable(until: number, signal: AbortSignal | undefined): Promise<boolean> {
    while (!this.canAcquire) {
      if (this.#clock.monotonic() >= until) return false;
      await this.waitForChange(until, signal);
    }
    return true;
  }

  /** Waits until a permit may be available, until a request reports its outcome, or until `until` (monotonic). */
  waitForChange(until: number, signal: AbortSignal | undefined): Promise<void> {
    const now = this.#clock.monotonic();
    const nextChangeAt = this.#isProbing ? until : Math.max(this.#pausedUntil, this.#probeAt ?? 0);
    return this.#sleepUntilReport(Math.min(nextChangeAt, until, now + MAX_WAIT_MS) - now, signal);
  }

  /** Waits for `ms`, or until the breaker opens: from then on its probes decide when a request may start. */
  async waitWhileClosed(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const until = this.#clock.monotonic() + ms;
    while (!this.isOpen) {
      const remainingMs = until - this.#clock.monotonic();
      if (remainingMs <= 0) return;
      await this.#sleepUntilReport(remainingMs, signal);
    }
  }

  /**
   * Calls `enter` whenever a permit may be available, until it returns a result: another request may take the permit first.
   * Returns undefined if there is no result before `until` (monotonic).
   */
  async enterWhenAvailable<T>(
    until: number,
    signal: AbortSignal | undefined,
    enter: () => Promise<T | undefined> | T | undefined,
  ): Promise<T | undefined> {
    while (await this.waitUntilAvailable(until, signal)) {
      const result = await enter();
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /** The host works again: probe at once, if the breaker is open. */
  probeNow(): void {
    if (this.isOpen) this.#probeAt = this.#clock.monotonic();
    this.#failedProbes = 0;
    this.#wakeWaiters();
  }

  tryAcquire(): Permit | undefined {
    if (!this.canAcquire) return undefined;
    const isProbe = this.isOpen;
    if (isProbe) this.#isProbing = true;
    let isReported = false;
    const once = (report: () => void) => {
      if (isReported) return;
      isReported = true;
      if (isProbe) this.#isProbing = false;
      report();
      this.#wakeWaiters();
    };
    return {
      recordSuccess: () => once(() => this.#onSuccess()),
      recordFailure: (pauseMs, weight = 1) => once(() => this.#onFailure(pauseMs, weight, isProbe)),
      release: () => once(() => {}),
    };
  }

  get canAcquire(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#pausedUntil) return false;
    return this.#probeAt === undefined || (!this.#isProbing && now >= this.#probeAt);
  }

  #onSuccess(): void {
    this.#failures = 0;
    this.#failingSince = undefined;
    if (!this.isOpen) return;
    this.#probeAt = undefined;
    this.#openedAt = undefined;
    this.#failedProbes = 0;
    this.#options.onStateChange("closed");
  }

  #onFailure(pauseMs: number, weight: number, isProbe: boolean): void {
    this.#failures += weight;
    const now = this.#clock.monotonic();
    this.#failingSince ??= now;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
    const { failuresToOpen, longFailure } = this.#options;
    const hasFailedLong =
      longFailure !== undefined &&
      this.#failures >= longFailure.failures &&
      now - this.#failingSince >= longFailure.ms;
    // Requests that were in flight when the breaker opened must not delay the probe further.
    const opensNow = !this.isOpen && (this.#failures >= failuresToOpen || hasFailedLong);
    if (!opensNow && !isProbe) return;
    this.#probeAt = now + backoffDelay(this.#failedProbes++, PROBE_BACKOFF, this.#options.random);
    if (!opensNow) return;
    this.#openedAt = now;
    this.#options.onStateChange("open");
  }

  #sleepUntilReport(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const cleanUp = () => {
        cancel();
        this.#waiters.delete(wake);
        signal?.removeEventListener("abort", abort);
      };
      const wake = () => {
        cleanUp();
        resolve();
      };
      const abort = () => {
        cleanUp();
        reject(signal?.reason);
      };
      const cancel = this.#clock.after(ms, wake);
      this.#waiters.add(wake);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  #wakeWaiters(): void {
    for (const wake of [...this.#waiters]) wake();
  }
}
