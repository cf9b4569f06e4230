import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";

export type CacheClock = Pick<Clock, "monotonic" | "beginWork" | "after">;

/** However often a key is requested, reading its value takes at most this fraction of the time. */
const MAX_READ_FRACTION = 1 / 20;
const DEFAULT_MAX_TTL_MS = 60_000;
/** Of a flood of different keys, at most so many are read in the shortest time that a value is kept. */
const MAX_KEYS = 32;

interface CacheEntry<T> {
  readonly value: Promise<T>;
  /** From then on it is read anew; never, while it is. */
  expiresAt: number;
  /** Until then it is returned. */
  staleUntil: number;
  /** From then on it makes room for another key: a person who tries one view after the other is no flood. */
  removableAt: number;
}

export interface TtlOptions {
  readonly minTtlMs: number;
  /** For a value that is cheap: what took long was the wait for the reader. */
  readonly maxTtlMs?: number;
  /** For so long after its end a value is still returned, and read anew behind it. */
  readonly maxStaleMs?: number;
}

/**
 * Caches one value per key. Concurrent callers share one read, so a flood of requests costs no more than a single one. A slow
 * read is cached longer; an error is cached too, but makes room for another key. While the cache is full of new values,
 * further keys are rejected: clients can request unlimited variants of a page.
 */
export class TtlCache<T> {
  readonly #clock: CacheClock;
  readonly #entries = new Map<string, CacheEntry<T>>();

  constructor(clock: CacheClock) {
    this.#clock = clock;
  }

  /** The cached value, or the result of `read`, which is then cached for at least `minTtlMs`. */
  get(key: string, options: TtlOptions, read: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const cached = this.#entries.get(key);
    if (cached && now < cached.staleUntil) {
      if (now >= cached.expiresAt) {
        cached.expiresAt = Number.POSITIVE_INFINITY;
        // After the reply: the read may keep this thread busy.
        this.#clock.after(0, () => void this.#renew(key, cached, options, read));
      }
      return cached.value;
    }
    if (!cached && this.#entries.size >= MAX_KEYS) {
      for (const [other, { removableAt }] of this.#entries)
        if (removableAt <= now) this.#entries.delete(other);
      if (this.#entries.size >= MAX_KEYS)
        return Promise.reject(new Failure("too many requests at once; try again", { code: "too_many" }));
    }
    const entry = this.#read(options, read);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** The old value, which says of which time it is, stays until there is a new one. */
  async #renew(key: string, old: CacheEntry<T>, options: TtlOptions, read: () => Promise<T>): Promise<void> {
    const entry = this.#read(options, read);
    await entry.value.then(
      () => this.#entries.set(key, entry),
      () => {
        old.expiresAt = this.#clock.monotonic() + options.minTtlMs;
      },
    );
  }

  #read(options: TtlOptions, read: () => Promise<T>): CacheEntry<T> {
    const { minTtlMs, maxTtlMs = DEFAULT_MAX_TTL_MS, maxStaleMs = 0 } = options;
    const startedAt = this.#clock.monotonic();
    const release = this.#clock.beginWork();
    const never = Number.POSITIVE_INFINITY;
    const value = Promise.resolve().then(read);
    const entry = { value, expiresAt: never, staleUntil: never, removableAt: never };
    const keep = (fraction: number, staleMs: number, unremovableMs: number) => {
      const now = this.#clock.monotonic();
      entry.expiresAt = now + Math.min(maxTtlMs, Math.max(minTtlMs, (now - startedAt) / fraction));
      entry.staleUntil = entry.expiresAt + staleMs;
      entry.removableAt = now + unremovableMs;
      release();
    };
    value.then(
      () => keep(MAX_READ_FRACTION, maxStaleMs, minTtlMs),
      () => keep(1, 0, 0),
    );
    return entry;
  }
}
