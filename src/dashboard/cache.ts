import { Failure } from "../model/failure.ts";
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

export interface VariantsOptions {
  readonly clock: Pick<Clock, "monotonic" | "hold">;
  readonly turns: TakingTurns;
  /** How long each is kept at least. */
  readonly leastMs: number;
  /** How many are kept. */
  readonly most: number;
}

/** Readings of one kind with different wishes, each kept apart; the one asked for longest ago makes room. */
export class KeptVariants<T> {
  readonly #known = new Map<string, KeptReading<T>>();
  readonly #options: VariantsOptions;

  constructor(options: VariantsOptions) {
    this.#options = options;
  }

  of(key: string, read: () => Promise<T>): KeptReading<T> {
    const { clock, leastMs, most, turns } = this.#options;
    const kept = this.#known.get(key) ?? new KeptReading(clock, leastMs, () => turns.run(read));
    this.#known.delete(key);
    this.#known.set(key, kept);
    const oldest = this.#known.keys().next().value;
    if (this.#known.size > most && oldest !== undefined) this.#known.delete(oldest);
    return kept;
  }
}

/** Who comes when so many wait already is told to come again. */
const MOST_WAITING = 24;
/** Somebody who types the next letter of a name should not wait longer because the first look took long. */
const LONGEST_REST_MS = 500;

/**
 * Work that visitors can ask for in endlessly many variants, so that keeping answers does not bound it: one at a time, and
 * after each a rest as long as it took, half a second at most. However hard a page is hammered, ingest keeps its processor.
 */
export class TakingTurns {
  readonly #clock: Pick<Clock, "monotonic" | "sleep" | "waive">;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(clock: Pick<Clock, "monotonic" | "sleep" | "waive">) {
    this.#clock = clock;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MOST_WAITING) {
      throw new Failure("too many ask at once; try again", { family: "retry", code: "too_many" });
    }
    this.#waiting++;
    const before = this.#last;
    let done = () => {};
    this.#last = new Promise((resolve) => {
      done = resolve;
    });
    // Those who hold the clock while they wait for us wait for time: the rest of whoever came before.
    const resume = this.#clock.waive();
    await before;
    resume();
    this.#waiting--;
    const started = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      const took = this.#clock.monotonic() - started;
      void this.#clock.sleep(Math.min(took, LONGEST_REST_MS)).then(done);
    }
  }
}
