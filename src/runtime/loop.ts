import type { Clock } from "./clock.ts";

export interface Loop {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The pause after each round, asked after it. */
  readonly everyMs: () => number;
  readonly work: () => Promise<void>;
  /** Told of every failed round; what it throws ends the loop. */
  readonly failed: (error: unknown) => void;
  /** Ends a pause early: resolves when there is something to do. */
  readonly woken?: (signal: AbortSignal) => Promise<void>;
}

/** Does the same again and again until the signal aborts: no second way to stop. */
export async function loop({ clock, signal, everyMs, work, failed, woken }: Loop): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
    }
    await pause(clock, everyMs(), signal, woken);
  }
}

async function pause(clock: Clock, ms: number, signal: AbortSignal, woken: Loop["woken"]): Promise<void> {
  const done = new AbortController();
  const until = AbortSignal.any([signal, done.signal]);
  const waits = [clock.sleep(ms, until), ...(woken ? [woken(until)] : [])];
  await Promise.race(waits).catch(() => {});
  done.abort();
  await Promise.allSettled(waits);
}

/** Lets one part of the program wake another. A call while nobody waits is kept for the next who does. */
export class Alarm {
  #isSet = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        signal.removeEventListener("abort", finish);
        this.#wake = undefined;
        if (!signal.aborted) this.#isSet = false;
        resolve();
      };
      signal.addEventListener("abort", finish, { once: true });
      this.#wake = finish;
      if (this.#isSet || signal.aborted) finish();
    });
  }
}

/** Does it once all messages that have arrived by now are dealt with. */
export function afterBacklog(work: () => void): void {
  setImmediate(work);
}
