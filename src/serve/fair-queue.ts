interface FairQueueOptions {
  /** So much work is done at once. */
  readonly maxRunning: number;
  /** So much of one group may wait. */
  readonly maxWaiting: number;
}

/** Does a few pieces of work at once. Groups take turns: one that asks for much waits for itself, not the others for it. */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** By group, the one whose turn is next first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** Undefined: too much of the group waits already. */
  run<T>(group: string, work: () => Promise<T>): Promise<T> | undefined {
    const own = this.#waiting.get(group) ?? [];
    if (own.length >= this.#options.maxWaiting) return undefined;
    this.#waiting.set(group, own);
    const started = new Promise<void>((start) => own.push(start));
    const result = started.then(work).finally(() => {
      this.#running--;
      this.#startNext();
    });
    this.#startNext();
    return result;
  }

  #startNext(): void {
    for (const [group, [start, ...others]] of this.#waiting) {
      if (this.#running >= this.#options.maxRunning) return;
      this.#waiting.delete(group);
      if (others.length > 0) this.#waiting.set(group, others);
      this.#running++;
      start?.();
    }
  }
}
