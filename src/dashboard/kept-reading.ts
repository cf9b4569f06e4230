import type { Clock } from "../runtime/clock.ts";

/** However often a page is asked for, reading for it takes at most this part of the time. */
const LARGEST_SHARE = 1 / 20;
const LONGEST_KEPT_MS = 60_000;

/**
 * A reading that is kept for a while and shared by all who ask meanwhile, so that a hammered page costs no more than one
 * that is looked at. One that took long is kept longer; one that failed is kept as well, for the shortest time.
 */
export class KeptReading<T> {
  readonly #clock: Pick<Clock, "monotonic" | "hold">;
  readonly #leastMs: number;
  readonly #read: () => Promise<T>;
  #value: Promise<T> | undefined;
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonic" | "hold">, leastMs: number, read: () => Promise<T>) {
    this.#clock = clock;
    this.#leastMs = leastMs;
    this.#read = read;
  }

  get(): Promise<T> {
    if (this.#value && this.#clock.monotonic() < this.#until) return this.#value;
    // Until it is read, nobody starts a second reading.
    this.#until = Number.POSITIVE_INFINITY;
    const started = this.#clock.monotonic();
    const release = this.#clock.hold();
    const keep = (share: number) => {
      const now = this.#clock.monotonic();
      this.#until = now + Math.min(LONGEST_KEPT_MS, Math.max(this.#leastMs, (now - started) / share));
      release();
    };
    this.#value = Promise.resolve().then(this.#read);
    this.#value.then(
      () => keep(LARGEST_SHARE),
      () => keep(1),
    );
    return this.#value;
  }
}
