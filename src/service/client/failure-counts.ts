import { Failure } from "../../model/failure.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { BUDGET, FAST_BACKOFF, MAX_HOLD_MS, MINUTE_MS, SLOW_BACKOFF } from "../limits.ts";

const COUNTED_MINUTES = 10;

/** They follow from earlier failures, and do not say what failed. */
const followingFailures: ReadonlySet<string> = new Set(["endpoint_failing", "service_unreachable"]);

/**
 * Counts the attempts that failed and were retried, by failure code: most of them cause no error that anyone sees. Logs one
 * line per minute in which some failed, when that minute is over.
 */
export class FailureCounts {
  readonly #clock: Clock;
  readonly #log: Log;
  #minutes: { readonly startedAt: number; readonly counts: Map<string, number> }[] = [];
  #isLogged = true;
  /** On the boot clock; undefined before the first success. */
  lastSuccessAt: number | undefined;
  /** The last failed attempt of a request. */
  last: Failure | undefined;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  recordSuccess(): void {
    this.lastSuccessAt = this.#clock.boottime();
    this.logFinishedMinute();
  }

  record(error: unknown): void {
    if (!(error instanceof Failure)) return;
    if (!followingFailures.has(error.code)) this.last = error;
    if (error.family !== "retry") return;
    this.logFinishedMinute();
    const now = this.#clock.monotonic();
    let minute = this.#minutes.at(-1);
    if (!minute || now - minute.startedAt >= MINUTE_MS) {
      minute = { startedAt: now, counts: new Map() };
      this.#minutes = [...this.#minutes.slice(1 - COUNTED_MINUTES), minute];
      this.#isLogged = false;
    }
    minute.counts.set(error.code, (minute.counts.get(error.code) ?? 0) + 1);
  }

  /** The failures of about the last ten minutes, by code; the most frequent first. */
  get recent(): Readonly<Record<string, number>> {
    const oldest = this.#clock.monotonic() - COUNTED_MINUTES * MINUTE_MS;
    const sums = new Map<string, number>();
    for (const { startedAt, counts } of this.#minutes)
      if (startedAt > oldest)
        for (const [code, count] of counts) sums.set(code, (sums.get(code) ?? 0) + count);
    return Object.fromEntries([...sums].sort(([, a], [, b]) => b - a));
  }

  /** Call often. `isEnding`: logs the current minute too. */
  logFinishedMinute(isEnding = false): void {
    const minute = this.#minutes.at(-1);
    const isOver = minute && (isEnding || this.#clock.monotonic() - minute.startedAt >= MINUTE_MS);
    if (this.#isLogged || !isOver) return;
    this.#isLogged = true;
    const failures = Object.fromEntries(minute.counts);
    this.#log.warn({ failures, lastFailure: this.last?.summary }, "requests failed and were retried");
  }
}

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
    // A snapshot must not miss its period because history has spent the budget.
    const unpaid = isUrgent && !isSlow ? { ...SLOW_BACKOFF, maxMs: MAX_HOLD_MS } : SLOW_BACKOFF;
    return backoffDelay(retries, isPaid && !isSlow ? FAST_BACKOFF : unpaid, this.#random);
  }
}
