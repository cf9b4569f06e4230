import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";

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
