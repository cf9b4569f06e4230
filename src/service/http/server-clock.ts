import type { Clock } from "../../runtime/clock.ts";

/** An odd number, so that one answer from a cache, or one with a nonsensical date, never decides. */
const SAMPLES = 9;
/** `Date` counts whole seconds, and the way takes time: less than this is no difference. */
const TOLERANCE_MS = 3_000;

export interface Freshness {
  readonly ageMs: number;
  readonly asOf: number | undefined;
}

/**
 * The service's time, learned from the `Date` of its answers. It is kept as a distance to the boot clock, so that a
 * stepped wall clock and a suspended machine leave it right.
 */
export class ServerClock {
  readonly #clock: Clock;
  readonly #offsets: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since 1970 by the service's clock; undefined before its first answer. */
  now(): number | undefined {
    return this.#at(this.#clock.boottime());
  }

  /** How far the local wall clock is ahead of the service's. */
  skewMs(): number | undefined {
    const server = this.now();
    return server === undefined ? undefined : this.#clock.now() - server;
  }

  /**
   * Takes in one answer and says how old it was when it came (what `Age` admits, or how far its `Date` lies before the
   * moment that we asked) and the moment at which it was true.
   */
  learn(serverTime: number | undefined, admittedMs: number, askedAt: number, answeredAt: number): Freshness {
    const expected = this.#at(askedAt);
    if (serverTime === undefined) {
      return { ageMs: admittedMs, asOf: expected === undefined ? undefined : expected - admittedMs };
    }
    if (admittedMs === 0) {
      this.#offsets.push(serverTime - (askedAt + answeredAt) / 2);
      if (this.#offsets.length > SAMPLES) this.#offsets.shift();
    }
    const lag = expected === undefined ? 0 : expected - serverTime;
    const ageMs = Math.max(admittedMs, lag > TOLERANCE_MS ? lag : 0);
    // Whether a cache kept the old Date or wrote its own is not known; the earlier reading is the safe one.
    return { ageMs, asOf: ageMs === 0 ? serverTime : Math.min(serverTime, (expected ?? serverTime) - ageMs) };
  }

  #at(boottime: number): number | undefined {
    const sorted = this.#offsets.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    return median === undefined ? undefined : boottime + median;
  }
}
