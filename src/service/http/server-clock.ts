import { MICROS_PER_MS, type Micros, parseServiceTimestamp } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The median of several samples ignores a single cached response or a nonsensical `Date`. */
const MAX_SAMPLES = 9;
/** `Date` has a resolution of one second and the network adds latency: a smaller difference means nothing. */
const SKEW_TOLERANCE_MS = 3_000;

/** The service's time minus the boot clock, by one response. */
interface OffsetSample {
  readonly offset: number;
  /** The wall clock minus the boot clock at that time. */
  readonly wallOffset: number;
  /** The header may be from any moment between request and response. */
  readonly errorMs: number;
}

/**
 * Estimates the service's time from the `Date` headers of its responses and the messages of the websocket, as offsets to the boot
 * clock (docs/decisions/service-clock.md).
 */
export class ServerClock {
  readonly #clock: Clock;
  readonly #samples: OffsetSample[] = [];
  /** By the last message of the websocket, which says more than whole seconds. */
  #moment: OffsetSample | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since 1970 by the service's clock; undefined before its first response. */
  now(): number | undefined {
    return this.#serverTimeAt(this.#clock.boottime());
  }

  /** The same for the warehouse; the local time before the first response. */
  nowMicros(): Micros {
    return Math.round((this.now() ?? this.#clock.now()) * MICROS_PER_MS);
  }

  /** `timestamp`: of a message that the websocket has just received. */
  recordMoment(timestamp: string | undefined): void {
    const at = parseServiceTimestamp(timestamp);
    if (at === undefined) return;
    const offset = at / MICROS_PER_MS - this.#clock.boottime();
    this.#moment = { offset, wallOffset: this.#wallOffset(), errorMs: 0 };
  }

  /** How far the local wall clock is ahead of the service's. */
  skewMs(): number | undefined {
    const server = this.now();
    return server === undefined ? undefined : this.#clock.now() - server;
  }

  /**
   * Adds one response to the estimate. Returns the response's age (its `Age` header, or how far its `Date` lies before
   * the request) and the service's time at which its content was current.
   */
  recordResponse(
    dateMs: number | undefined,
    ageHeaderMs: number,
    requestedAt: number,
    receivedAt: number,
  ): { readonly ageMs: number; readonly asOf: number | undefined } {
    const expected = this.#serverTimeAt(requestedAt);
    if (dateMs === undefined) {
      return { ageMs: ageHeaderMs, asOf: expected === undefined ? undefined : expected - ageHeaderMs };
    }
    if (ageHeaderMs === 0) {
      const offset = dateMs - (requestedAt + receivedAt) / 2;
      this.#samples.push({ offset, wallOffset: this.#wallOffset(), errorMs: (receivedAt - requestedAt) / 2 });
      if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
    }
    const lag = expected === undefined ? 0 : expected - dateMs;
    const ageMs = Math.max(ageHeaderMs, lag > SKEW_TOLERANCE_MS ? lag : 0);
    // A cache may pass on the original Date or write its own; the earlier of both times is the safe one.
    return { ageMs, asOf: ageMs === 0 ? dateMs : Math.min(dateMs, (expected ?? dateMs) - ageMs) };
  }

  #wallOffset(): number {
    return this.#clock.now() - this.#clock.boottime();
  }

  #serverTimeAt(boottime: number): number | undefined {
    const samples = this.#usable(this.#samples);
    const [moment] = this.#moment ? this.#usable([this.#moment]) : [];
    // A response that took a minute says little beside one that took a second.
    const smallestError = Math.min(...samples.map(({ errorMs }) => errorMs));
    const sorted = samples
      .filter(({ errorMs }) => errorMs <= smallestError + SKEW_TOLERANCE_MS)
      .map(({ offset }) => offset)
      .sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    // A message that contradicts the responses may come from another clock.
    const isMoment = moment && Math.abs((median ?? moment.offset) - moment.offset) <= SKEW_TOLERANCE_MS;
    const offset = isMoment ? moment.offset : median;
    return offset === undefined ? undefined : boottime + offset;
  }

  /** Where the two local clocks have come apart, one of them is wrong, perhaps the boot clock: a host has paused the machine. */
  #usable(samples: readonly OffsetSample[]): readonly OffsetSample[] {
    const wallOffset = this.#wallOffset();
    const since = samples.filter((sample) => Math.abs(sample.wallOffset - wallOffset) <= SKEW_TOLERANCE_MS);
    return since.length > 0 ? since : samples;
  }
}
