import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";

/** However often a page is requested, reading for it takes at most this share of the time. */
const MAX_READ_SHARE = 1 / 20;
const MAX_TTL_MS = 60_000;

/**
 * Caches one value and shares it among all callers, so that a flood of requests costs no more than a single one. A slow read
 * is cached longer. An error is cached too, for the minimum time.
 */
export class CachedValue<T> {
  readonly #clock: Pick<Clock, "monotonic" | "beginWork">;
  readonly #minTtlMs: number;
  readonly #read: () => Promise<T>;
  #value: Promise<T> | undefined;
  #expiresAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonic" | "beginWork">, minTtlMs: number, read: () => Promise<T>) {
    this.#clock = clock;
    this.#minTtlMs = minTtlMs;
    this.#read = read;
  }

  get(): Promise<T> {
    if (this.#value && this.#clock.monotonic() < this.#expiresAt) return this.#value;
    // No second read starts while this one runs.
    this.#expiresAt = Number.POSITIVE_INFINITY;
    const startedAt = this.#clock.monotonic();
    const release = this.#clock.beginWork();
    const setExpiry = (share: number) => {
      const now = this.#clock.monotonic();
      this.#expiresAt = now + Math.min(MAX_TTL_MS, Math.max(this.#minTtlMs, (now - startedAt) / share));
      release();
    };
    this.#value = Promise.resolve().then(this.#read);
    this.#value.then(
      () => setExpiry(MAX_READ_SHARE),
      () => setExpiry(1),
    );
    return this.#value;
  }
}

interface KeyedCacheOptions {
  readonly clock: Pick<Clock, "monotonic" | "beginWork">;
  readonly queue: ThrottledQueue;
  /** The minimum time for which an entry is cached. */
  readonly minTtlMs: number;
  readonly maxEntries: number;
}

/** A cache of one value per key; it evicts the least recently used entry. */
export class KeyedCache<T> {
  readonly #entries = new Map<string, CachedValue<T>>();
  readonly #options: KeyedCacheOptions;

  constructor(options: KeyedCacheOptions) {
    this.#options = options;
  }

  entry(key: string, read: () => Promise<T>): CachedValue<T> {
    const { clock, minTtlMs, maxEntries, queue } = this.#options;
    const entry = this.#entries.get(key) ?? new CachedValue(clock, minTtlMs, () => queue.run(read));
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const oldest = this.#entries.keys().next().value;
    if (this.#entries.size > maxEntries && oldest !== undefined) this.#entries.delete(oldest);
    return entry;
  }
}

/** Further callers are rejected and may retry. */
const MAX_WAITING = 24;
/** A person who types the next letter of a name must not wait long after a slow search. */
const MAX_REST_MS = 500;

/**
 * Limits work that clients can request in unlimited variants, which a cache alone cannot bound. It runs one task at a time
 * and rests after each for as long as the task took (at most half a second), so that ingest keeps its processor.
 */
export class ThrottledQueue {
  readonly #clock: Pick<Clock, "monotonic" | "sleep" | "beginWait">;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(clock: Pick<Clock, "monotonic" | "sleep" | "beginWait">) {
    this.#clock = clock;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) {
      throw new Failure("too many requests at once; try again", { family: "retry", code: "too_many" });
    }
    this.#waiting++;
    const previous = this.#last;
    let done = () => {};
    this.#last = new Promise((resolve) => {
      done = resolve;
    });
    // Callers hold the test clock while they wait here, but this wait needs time to pass: the rest of the task before.
    const resume = this.#clock.beginWait();
    await previous;
    resume();
    this.#waiting--;
    const startedAt = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      const tookMs = this.#clock.monotonic() - startedAt;
      void this.#clock.sleep(Math.min(tookMs, MAX_REST_MS)).then(done);
    }
  }
}
