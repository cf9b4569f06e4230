import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";

/** However often a key is requested, reading its value takes at most this share of the time. */
const MAX_READ_SHARE = 1 / 20;
const MAX_TTL_MS = 60_000;
/** With the share above, a flood of different keys keeps the reader busy for at most 80 % of the time. */
const MAX_KEYS = 16;

interface CacheEntry<T> {
  readonly value: Promise<T>;
  expiresAt: number;
  hasFailed: boolean;
}

/**
 * Caches one value per key. Concurrent callers share one read, so a flood of requests costs no more than a single one. A slow
 * read is cached longer; an error is cached too, but makes room for another key. While the cache is full of valid values,
 * further keys are rejected: clients can request unlimited variants of a page.
 */
export class TtlCache<T> {
  readonly #clock: Pick<Clock, "monotonic" | "beginWork">;
  readonly #entries = new Map<string, CacheEntry<T>>();

  constructor(clock: Pick<Clock, "monotonic" | "beginWork">) {
    this.#clock = clock;
  }

  /** The cached value, or the result of `read`, which is then cached for at least `minTtlMs`. */
  get(key: string, minTtlMs: number, read: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic();
    const cached = this.#entries.get(key);
    if (cached && startedAt < cached.expiresAt) return cached.value;
    if (!cached && this.#entries.size >= MAX_KEYS) {
      for (const [other, { expiresAt, hasFailed }] of this.#entries) {
        if (hasFailed || expiresAt <= startedAt) this.#entries.delete(other);
      }
      if (this.#entries.size >= MAX_KEYS) return Promise.reject(tooManyFailure());
    }
    const release = this.#clock.beginWork();
    const entry = {
      value: Promise.resolve().then(read),
      expiresAt: Number.POSITIVE_INFINITY,
      hasFailed: false,
    };
    const setExpiry = (share: number) => {
      const now = this.#clock.monotonic();
      entry.expiresAt = now + Math.min(MAX_TTL_MS, Math.max(minTtlMs, (now - startedAt) / share));
      release();
    };
    entry.value.then(
      () => setExpiry(MAX_READ_SHARE),
      () => {
        entry.hasFailed = true;
        setExpiry(1);
      },
    );
    this.#entries.set(key, entry);
    return entry.value;
  }
}

function tooManyFailure(): Failure {
  return new Failure("too many requests at once; try again", { code: "too_many" });
}
