import type { Clock } from "../../runtime/clock.ts";

interface AdaptiveRateOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** A configured limit in requests per second; 0: none, only the learned one applies. */
  readonly maxPerSecond: number;
}

/** The ceiling is set just below what the service accepted, and the rate just below the ceiling. */
const CEILING_SHARE = 0.97;
const RATE_SHARE = 0.92;
/** The rate returns to the ceiling in this time and so many requests: quickly to a first guess, slowly to a known limit. */
const GUESS_RECOVERY = { minMs: 3_000, maxMs: 10_000, requests: 5 };
const KNOWN_RECOVERY = { minMs: 12_000, maxMs: 24_000, requests: 24 };
/** Two ceilings in a row that differ by less than this share are one known limit. */
const MAX_CEILING_DIFFERENCE = 0.25;
/** Above the ceiling the rate doubles after this time, and grows faster the longer nothing is rejected. */
const DOUBLING_MS = 5_000;
const MIN_RATE = 0.1;
/** The first guess if the service has accepted nothing lately. */
const UNKNOWN_RATE = 1;
/** Above the ceiling, so many starts in a row that the rate does not delay show that there is no limit any more. */
const UNDELAYED_STARTS = 100;
/** What the service accepts is measured over a second, or over the time of some requests if the rate is lower. */
const MEASURED_MS = 1_000;
const MAX_MEASURED_MS = 10_000;
const MEASURED_REQUESTS = 8;
const MAX_STORED_RESPONSES = 1_000;
/** A late timer may catch up this much, so that coarse timers do not lower the rate. */
const MAX_CATCH_UP_MS = 20;
/** After a 429 nothing is sent for one interval; twice as long after each further one in a row. */
const MAX_HOLD_MS = 30_000;
const MIN_HOLD_MS = 1;
/** So many early rejections in a row, at a falling rate and with a low share, are not about the rate. */
const MIN_EARLY_REJECTIONS = 4;
const MIN_EARLY_RESPONSES = 24;
const MAX_RANDOM_SHARE = 0.2;
/** Beyond the third early rejection the rate falls faster, to make the test decisive. */
const TEST_SHARE = 0.8;
/** For how long rejections are then ignored; doubles with each such finding. */
const RANDOM_PERIOD_MS = 30_000;
const MAX_RANDOM_PERIOD_MS = 600_000;
/** Above a limit, requests in flight are rejected together. */
const CLUSTER_SIZE = 3;
/** A random 429 with `Retry-After` is harmless: a limit takes more of them, in flight together or in a row across pauses. */
const RETRY_AFTER_CLUSTER_SIZE = { together: 4, inARow: 8 };

interface ReceivedResponse {
  readonly at: number;
  readonly isRejected: boolean;
}

/**
 * Learns the request rate that the service accepts; there is no limit until it rejects several requests together. The rate
 * then falls below what was accepted, grows slowly back to that ceiling, and ever faster beyond it (as CUBIC does).
 */
export class AdaptiveRate {
  readonly #options: AdaptiveRateOptions;
  /** Requests per second that the service accepted when it last rejected one. */
  #ceiling = Number.POSITIVE_INFINITY;
  #recovery = GUESS_RECOVERY;
  /** Time spent at the limit since the last decrease: an unused limit does not grow. */
  #growthMs = 0;
  #nextStartAt = Number.NEGATIVE_INFINITY;
  #lastStartAt = Number.NEGATIVE_INFINITY;
  #undelayedStarts = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** The last rejection that was new evidence, and how many there were in a row. */
  #rejectedAt = Number.NEGATIVE_INFINITY;
  #rejectionsInARow = 0;
  #responses: ReceivedResponse[] = [];
  #responsesSinceDecrease = 0;
  /** Early rejections in a row, with all responses since; `rate` is the rate before the first. */
  #early = { count: 0, responses: 0, rejections: 0, rate: Number.POSITIVE_INFINITY };
  #ignoresUntil = Number.NEGATIVE_INFINITY;
  #randomPeriodMs = RANDOM_PERIOD_MS;

  constructor(options: AdaptiveRateOptions) {
    this.#options = options;
  }

  /** The learned rate in requests per second; undefined: none. */
  get learned(): number | undefined {
    const rate = this.#rate();
    return rate === Number.POSITIVE_INFINITY ? undefined : rate;
  }

  /** The present limit in requests per second, learned or configured; undefined: none. */
  get perSecond(): number | undefined {
    const limit = this.#limit();
    return limit === Number.POSITIVE_INFINITY ? undefined : limit;
  }

  /** Until when the service asked for silence (monotonic); undefined: it did not, or the time has passed. */
  get pausedUntil(): number | undefined {
    return this.#pausedUntil > this.#now() ? this.#pausedUntil : undefined;
  }

  /** When the next request may start (monotonic). */
  get nextStartAt(): number {
    return Math.max(this.#nextStartAt, this.#pausedUntil);
  }

  /** A request starts now. `hadToWait`: the rate delayed it. */
  recordStart(hadToWait: boolean): void {
    const now = this.#now();
    const limit = this.#limit();
    if (limit !== Number.POSITIVE_INFINITY) {
      const interval = 1000 / limit;
      if (hadToWait && this.#rejectionsInARow === 0)
        this.#growthMs += Math.min(now - this.#lastStartAt, 2 * interval + MAX_CATCH_UP_MS);
      const catchUpMs = hadToWait ? Math.min(interval, MAX_CATCH_UP_MS) : 0;
      this.#nextStartAt = Math.max(this.#nextStartAt, now - catchUpMs) + interval;
      this.#undelayedStarts = hadToWait ? 0 : this.#undelayedStarts + 1;
      const isAboveCeiling = this.#growthMs > this.#recoveryMs();
      if (isAboveCeiling && this.#undelayedStarts >= UNDELAYED_STARTS)
        this.#ceiling = Number.POSITIVE_INFINITY;
    }
    this.#lastStartAt = now;
  }

  /** A response other than a 429 arrived. */
  recordAccepted(startedAt: number): void {
    this.#addResponse(false);
    if (startedAt >= this.#rejectedAt) this.#rejectionsInARow = 0;
  }

  /** A 429 arrived. `retryAfterMs`: no request may start for this long; 0: the service did not say. */
  recordRejected(startedAt: number, retryAfterMs: number): void {
    this.#addResponse(true);
    const now = this.#now();
    this.#pausedUntil = Math.max(this.#pausedUntil, now + retryAfterMs);
    // Requests that started before the last rejection are no new evidence, except that all in flight fail together.
    const isNew = startedAt >= this.#rejectedAt;
    const mayBeRandom = now < this.#ignoresUntil || this.#ceiling === Number.POSITIVE_INFINITY;
    const { together, inARow } = RETRY_AFTER_CLUSTER_SIZE;
    const isCluster =
      retryAfterMs > 0
        ? this.#wereRejected(together, startedAt) || this.#wereRejected(inARow)
        : this.#wereRejected(CLUSTER_SIZE);
    if (mayBeRandom ? isCluster : isNew && this.#rejectionsInARow === 0) this.#decrease(now);
    if (!isNew) return;
    this.#rejectedAt = now;
    const holdMs = Math.max(MIN_HOLD_MS, 1000 / this.#limit()) * 2 ** this.#rejectionsInARow++;
    this.#nextStartAt = Math.max(this.#nextStartAt, now + Math.min(holdMs, MAX_HOLD_MS));
  }

  #decrease(now: number): void {
    const rate = this.#rate();
    const isRandom = this.#testForRandom(rate);
    this.#responsesSinceDecrease = 0;
    if (isRandom) {
      this.#ceiling = this.#early.rate;
      this.#growthMs = this.#recoveryMs();
      this.#early.count = 0;
      this.#ignoresUntil = now + this.#randomPeriodMs;
      this.#randomPeriodMs = Math.min(2 * this.#randomPeriodMs, MAX_RANDOM_PERIOD_MS);
      return;
    }
    this.#ignoresUntil = Number.NEGATIVE_INFINITY;
    const testShare = this.#early.count >= MIN_EARLY_REJECTIONS - 1 ? TEST_SHARE : 1;
    const accepted = Math.min(rate, Math.max(this.#acceptedRate(), Math.min(rate / 2, UNKNOWN_RATE)));
    const ceiling = Math.max(MIN_RATE, accepted * CEILING_SHARE * testShare);
    const isKnown = Math.abs(ceiling / this.#ceiling - 1) < MAX_CEILING_DIFFERENCE;
    this.#recovery = isKnown ? KNOWN_RECOVERY : GUESS_RECOVERY;
    this.#ceiling = ceiling;
    this.#growthMs = 0;
  }

  /** A real limit rejects nothing once the rate is clearly below it; what rejects regardless of the rate is none. */
  #testForRandom(rate: number): boolean {
    const isBelowCeiling =
      this.#growthMs < 0.75 * this.#recoveryMs() || (rate > 2.5 && this.#responsesSinceDecrease < 16);
    const isEarly =
      this.#ceiling !== Number.POSITIVE_INFINITY && isBelowCeiling && this.#responsesSinceDecrease < 60;
    if (!isEarly) {
      this.#early = { count: 0, responses: 0, rejections: 0, rate };
      return false;
    }
    const { responses, rejections } = this.#early;
    if (++this.#early.count < MIN_EARLY_REJECTIONS || responses < MIN_EARLY_RESPONSES) return false;
    if (rejections / responses < MAX_RANDOM_SHARE) return true;
    this.#early = { ...this.#early, count: 0, responses: 0, rejections: 0 };
    return false;
  }

  #limit(): number {
    const { maxPerSecond } = this.#options;
    return Math.min(this.#rate(), maxPerSecond > 0 ? maxPerSecond : Number.POSITIVE_INFINITY);
  }

  #rate(): number {
    const beyondMs = this.#growthMs - this.#recoveryMs();
    if (beyondMs >= 0) return this.#ceiling * 2 ** ((beyondMs / DOUBLING_MS) ** 2);
    return this.#ceiling * (1 - (1 - RATE_SHARE) * (-beyondMs / this.#recoveryMs()) ** 3);
  }

  #recoveryMs(): number {
    const { minMs, maxMs, requests } = this.#recovery;
    return Math.min(maxMs, Math.max(minMs, (requests * 1000) / this.#ceiling));
  }

  #addResponse(isRejected: boolean): void {
    const at = this.#now();
    this.#responses.push({ at, isRejected });
    this.#responsesSinceDecrease++;
    this.#early.responses++;
    if (isRejected) this.#early.rejections++;
    const half = this.#responses[MAX_STORED_RESPONSES / 2];
    if (this.#responses.length < MAX_STORED_RESPONSES || (half?.at ?? at) > at - MEASURED_MS) return;
    this.#responses = this.#responses.slice(MAX_STORED_RESPONSES / 2);
  }

  #acceptedRate(): number {
    const slowMs = Math.min(MAX_MEASURED_MS, (MEASURED_REQUESTS * 1000) / this.#ceiling);
    return Math.max(this.#acceptedPerSecond(MEASURED_MS), this.#acceptedPerSecond(slowMs));
  }

  #acceptedPerSecond(windowMs: number): number {
    const now = this.#now();
    const measuredMs = Math.max(MEASURED_MS, Math.min(windowMs, now - (this.#responses[0]?.at ?? now)));
    const accepted = this.#responses.filter(({ at, isRejected }) => !isRejected && at > now - measuredMs);
    return (accepted.length * 1000) / measuredMs;
  }

  /** Whether each of the last `count` responses was a 429 that arrived at or after `since`. */
  #wereRejected(count: number, since = Number.NEGATIVE_INFINITY): boolean {
    const last = this.#responses.slice(-count);
    return last.length === count && last.every(({ at, isRejected }) => isRejected && at >= since);
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
