import { PriorityQueue, type Queue, type QueueAddOptions, type RunFunction } from "p-queue";
import { priority } from "./endpoints.ts";

/** Whoever is no poll waits for so many of them, at most. */
const POLLS_IN_A_ROW = 3;

/**
 * Polls go first, and of every four turns one is left to the others: where polls fall due faster than the service may be
 * asked, history would wait for ever.
 */
export class FairQueue implements Queue<RunFunction, QueueAddOptions> {
  readonly #polls = new PriorityQueue();
  readonly #others = new PriorityQueue();
  #inARow = 0;

  get size(): number {
    return this.#polls.size + this.#others.size;
  }

  enqueue(run: RunFunction, options?: Partial<QueueAddOptions>): void {
    const lane = options?.priority === priority.head ? this.#polls : this.#others;
    lane.enqueue(run, options);
  }

  dequeue(): RunFunction | undefined {
    const isOthersTurn = this.#polls.size === 0 || this.#inARow >= POLLS_IN_A_ROW;
    if (this.#others.size === 0) {
      this.#inARow = 0;
      return this.#polls.dequeue();
    }
    this.#inARow = isOthersTurn ? 0 : this.#inARow + 1;
    return (isOthersTurn ? this.#others : this.#polls).dequeue();
  }

  filter(options: Readonly<Partial<QueueAddOptions>>): RunFunction[] {
    const all = { priority: 0, ...options };
    return [...this.#polls.filter(all), ...this.#others.filter(all)];
  }

  setPriority(): void {
    throw new Error("a request keeps the priority that it came with");
  }

  remove(id: string): void {
    this.#polls.remove(id);
    this.#others.remove(id);
  }
}
