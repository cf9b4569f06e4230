import type { Random } from "../../src/runtime/clock.ts";
import { seededRandom } from "../support/seeded-random.ts";

/** Random choices from a seed. */
export class SeededDraw {
  readonly #random: Random;

  constructor(seed: number) {
    // Spread the seed first, because neighbouring seeds start with similar numbers.
    this.#random = seededRandom(Math.imul(seed + 1, 0x9e3779b1));
    this.#random();
  }

  chance(p: number): boolean {
    return this.#random() < p;
  }

  /** An integer in [from, to]. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1));
  }

  one<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }

  /** `count` different items. */
  sample<T>(items: readonly T[], count: number): T[] {
    const left = [...items];
    return Array.from(
      { length: Math.min(count, left.length) },
      () => left.splice(Math.floor(this.#random() * left.length), 1)[0] as T,
    );
  }
}
