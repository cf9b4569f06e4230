import type { Clock } from "../runtime/clock.ts";
import { KeptReading } from "./kept-reading.ts";
import type { TakingTurns } from "./taking-turns.ts";

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
