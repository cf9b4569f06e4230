import type { Clock } from "./clock.ts";

interface LoopOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The pause after each iteration, evaluated after it. */
  readonly delayMs: () => number;
  readonly runOnce: () => Promise<void>;
  /** Called for every failed iteration. If it throws, the loop ends. */
  readonly onError: (error: unknown) => void;
  /** Notified when there is work to do: ends the pause early. */
  readonly wakeUp?: WakeSignal | undefined;
}

/** Repeats `runOnce` until the signal aborts; there is no other way to stop. */
export async function runLoop({
  clock,
  signal,
  delayMs,
  runOnce,
  onError,
  wakeUp,
}: LoopOptions): Promise<void> {
  while (!signal.aborted) {
    try {
      await runOnce();
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
    }
    await pause(clock, delayMs(), signal, wakeUp);
  }
}

async function pause(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  wakeUp: WakeSignal | undefined,
): Promise<void> {
  const done = new AbortController();
  const ended = AbortSignal.any([signal, done.signal]);
  const waits = [clock.sleep(ms, ended), ...(wakeUp ? [wakeUp.wait(ended)] : [])];
  await Promise.race(waits).catch(() => {});
  // Without a reason of its own, each pause would create an error with its stack trace.
  done.abort("the pause has ended");
  await Promise.allSettled(waits);
}

/** Wakes a waiting loop. If no loop waits, `notify` ends the next wait at once. */
export class WakeSignal {
  #isNotified = false;
  #resolveWait: (() => void) | undefined;

  notify(): void {
    this.#isNotified = true;
    this.#resolveWait?.();
  }

  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        signal.removeEventListener("abort", finish);
        this.#resolveWait = undefined;
        if (!signal.aborted) this.#isNotified = false;
        resolve();
      };
      signal.addEventListener("abort", finish, { once: true });
      this.#resolveWait = finish;
      if (this.#isNotified || signal.aborted) finish();
    });
  }
}

/** Lets everything else that is due run first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs `work` after all messages that have already arrived are handled. */
export function runAfterPendingMessages(work: () => void): void {
  setImmediate(work);
}

/** Uniform in [0, 1), like Math.random. Injected, so that tests can seed it. */
export type Random = () => number;

interface BackoffOptions {
  /** The upper limit of the first delay. */
  baseMs: number;
  /** The upper limit of every delay. */
  maxMs: number;
  /** The random part of a delay. 1, the default, is full jitter: any delay from zero to the upper limit. */
  jitter?: number;
}

/** Capped exponential backoff with jitter: attempt 0 waits up to `baseMs`, each further one up to twice as long. */
export function backoffDelay(
  attempt: number,
  { baseMs, maxMs, jitter = 1 }: BackoffOptions,
  random: Random,
): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 52));
  return ceiling * (1 - jitter + jitter * random());
}
