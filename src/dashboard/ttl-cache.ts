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
  expiresAt: number;
  /** From then on it makes room for another key: a person who tries one view after the other is no flood. */
  removableAt: number;
  hasFailed: boolean;
  /** From then on an old value is read anew; never, while it is. */
  renewableAt: number;
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
    const startedAt = this.#clock.monotonic();
    const cached = this.#entries.get(key);
    if (cached && startedAt < cached.expiresAt) return cached.value;
    if (cached && !cached.hasFailed && startedAt < cached.expiresAt + (options.maxStaleMs ?? 0)) {
      if (startedAt >= cached.renewableAt) {
        cached.renewableAt = Number.POSITIVE_INFINITY;
        // After the reply: the read may keep this thread busy.
        this.#clock.after(0, () => void this.#renew(key, cached, options, read));
      }
      return cached.value;
    }
    if (!cached && this.#entries.size >= MAX_KEYS) {
      for (const [other, { removableAt, hasFailed }] of this.#entries) {
        if (hasFailed || removableAt <= startedAt) this.#entries.delete(other);
      }
      const tooMany = () => new Failure("too many requests at once; try again", { code: "too_many" });
      if (this.#entries.size >= MAX_KEYS) return Promise.reject(tooMany());
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
        old.renewableAt = this.#clock.monotonic() + options.minTtlMs;
      },
    );
  }

  #read({ minTtlMs, maxTtlMs = DEFAULT_MAX_TTL_MS }: TtlOptions, read: () => Promise<T>): CacheEntry<T> {
    const startedAt = this.#clock.monotonic();
    const release = this.#clock.beginWork();
    const entry = {
      value: Promise.resolve().then(read),
      expiresAt: Number.POSITIVE_INFINITY,
      removableAt: Number.POSITIVE_INFINITY,
      hasFailed: false,
      renewableAt: 0,
    };
    const setExpiry = (fraction: number) => {
      const now = this.#clock.monotonic();
      entry.removableAt = now + minTtlMs;
      entry.expiresAt = now + Math.min(maxTtlMs, Math.max(minTtlMs, (now - startedAt) / fraction));
      release();
    };
    entry.value.then(
      () => setExpiry(MAX_READ_FRACTION),
      () => {
        entry.hasFailed = true;
        setExpiry(1);
      },
    );
    return entry;
  }
}
