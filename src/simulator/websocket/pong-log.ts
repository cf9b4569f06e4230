const MAX_SAMPLES = 100_000;

export interface PongSummary {
  readonly answered: number;
  /** Milliseconds, over the latest samples. */
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly worstMs: number;
}

/** Measures how long clients take to answer a PING with a requestId. */
export class PongLog {
  #ms: number[] = [];
  #answered = 0;

  add(ms: number): void {
    this.#answered++;
    this.#ms.push(ms);
    if (this.#ms.length > 2 * MAX_SAMPLES) this.#ms = this.#ms.slice(-MAX_SAMPLES);
  }

  get summary(): PongSummary {
    const sorted = this.#ms.toSorted((a, b) => a - b);
    const at = (fraction: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
    return { answered: this.#answered, medianMs: at(0.5), p99Ms: at(0.99), worstMs: at(1) };
  }
}
