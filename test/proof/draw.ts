import { type Random, seededRandom } from "../../src/runtime/backoff.ts";

/** Choices from a seed. */
export class Draw {
  readonly #random: Random;

  constructor(seed: number) {
    // Neighbouring seeds begin alike, so they are spread first.
    this.#random = seededRandom(Math.imul(seed + 1, 0x9e3779b1));
    this.#random();
  }

  chance(p: number): boolean {
    return this.#random() < p;
  }

  /** A whole number of [from, to]. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1));
  }

  one<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }

  /** So many different ones. */
  some<T>(items: readonly T[], count: number): T[] {
    const left = [...items];
    return Array.from(
      { length: Math.min(count, left.length) },
      () => left.splice(Math.floor(this.#random() * left.length), 1)[0] as T,
    );
  }
}
