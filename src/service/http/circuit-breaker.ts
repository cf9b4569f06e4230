import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Failures in a row, over all streams, that open the breaker. */
const FAILURES_TO_OPEN = 8;
const PROBE_BACKOFF = { baseMs: 5_000, maxMs: 60_000, jitter: 0.5 };

/** Re-check hourly; never set an unbounded timer. */
const MAX_WAIT_MS = 3_600_000;

/** Allows one request. The holder reports its outcome exactly once; later reports are ignored. */
export interface Permit {
  recordSuccess(): void;
  /** `pauseMs`: no request to the host may start for this long. */
  recordFailure(pauseMs: number): void;
  /** The outcome says nothing about the host. */
  release(): void;
}

/**
 * Shared by all requests to one host. A `Retry-After` pauses all of them. After several failures in a row the breaker opens
 * and lets one probe at a time through, at growing intervals, so that an outage costs few requests.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #onStateChange: (state: "closed" | "open") => void;
  readonly #waiters = new Set<() => void>();
  #pausedUntil = 0;
  #failures = 0;
  #failedProbes = 0;
  #probeAt: number | undefined;
  #isProbing = false;

  constructor(clock: Clock, random: Random, onStateChange: (state: "closed" | "open") => void) {
    this.#clock = clock;
    this.#random = random;
    this.#onStateChange = onStateChange;
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
    while (!this.#canAcquire()) {
      const now = this.#clock.monotonic();
      if (now >= until) return false;
      const nextChangeAt = this.#isProbing ? until : Math.max(this.#pausedUntil, this.#probeAt ?? 0);
      await this.#waitForChange(Math.min(nextChangeAt, until, now + MAX_WAIT_MS) - now, signal);
    }
    return true;
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

  tryAcquire(): Permit | undefined {
    if (!this.#canAcquire()) return undefined;
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
      recordFailure: (pauseMs) => once(() => this.#onFailure(pauseMs, isProbe)),
      release: () => once(() => {}),
    };
  }

  #canAcquire(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#pausedUntil) return false;
    return this.#probeAt === undefined || (!this.#isProbing && now >= this.#probeAt);
  }

  #onSuccess(): void {
    this.#failures = 0;
    if (!this.isOpen) return;
    this.#probeAt = undefined;
    this.#failedProbes = 0;
    this.#onStateChange("closed");
  }

  #onFailure(pauseMs: number, isProbe: boolean): void {
    this.#failures++;
    const now = this.#clock.monotonic();
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
    // Requests that were in flight when the breaker opened must not delay the probe further.
    const opensNow = !this.isOpen && this.#failures >= FAILURES_TO_OPEN;
    if (!opensNow && !isProbe) return;
    this.#probeAt = now + backoffDelay(this.#failedProbes++, PROBE_BACKOFF, this.#random);
    if (opensNow) this.#onStateChange("open");
  }

  #waitForChange(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
