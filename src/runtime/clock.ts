import { uptime } from "node:os";

export type Cancel = () => void;

/** The only source of time and timers. Tests replace it. Its clocks distinguish a suspension from a wall clock step. */
export interface Clock {
  /** Wall clock, milliseconds since 1970 UTC. May jump in both directions. */
  now(): number;
  /** Milliseconds that never go back; stops while the machine is suspended. */
  monotonic(): number;
  /** Milliseconds since boot, time spent suspended included. */
  boottime(): number;
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  after(ms: number, callback: () => void): Cancel;
  /**
   * Marks work that is not a timer (a request, a commit) until the returned function is called. A manual clock does not
   * advance meanwhile; on the system clock it does nothing.
   */
  beginWork(): Cancel;
  /** The opposite of `beginWork`: this work now waits for time (a slow server, a retry), so a manual clock may advance. */
  beginWait(): Cancel;
}

/** setTimeout fires at once beyond 2^31-1 ms (24.8 days), so longer waits are chained. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const noop: Cancel = () => {};

/** Reading the boot time takes microseconds: too much for every live tick. */
const SUSPENSION_CHECK_INTERVAL_MS = 50;
/** The system reports its boot time in hundredths of a second: a smaller difference is no suspension. */
const MIN_SUSPENSION_MS = 20;

/** Boot time minus monotonic time. Only suspensions make it grow. */
const bootOffset = { ms: Number.NEGATIVE_INFINITY, checkedAt: Number.NEGATIVE_INFINITY };

function readBootTime(): number {
  const now = performance.now();
  if (now - bootOffset.checkedAt >= SUSPENSION_CHECK_INTERVAL_MS) {
    bootOffset.checkedAt = now;
    const offsetMs = uptime() * 1000 - now;
    if (offsetMs > bootOffset.ms + MIN_SUSPENSION_MS) bootOffset.ms = offsetMs;
  }
  return now + bootOffset.ms;
}

/** Implements `sleep` with `after`, for every clock. */
export function sleepUsing(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  boottime: readBootTime,
  sleep: (ms, signal) => sleepUsing(systemClock, ms, signal),
  after(ms, callback) {
    let timer: NodeJS.Timeout;
    const startTimer = (remainingMs: number) => {
      timer = setTimeout(
        () => (remainingMs > MAX_TIMER_MS ? startTimer(remainingMs - MAX_TIMER_MS) : callback()),
        Math.max(0, Math.min(remainingMs, MAX_TIMER_MS)),
      );
    };
    startTimer(ms);
    return () => clearTimeout(timer);
  },
  beginWork: () => noop,
  beginWait: () => noop,
};

export interface LoopOptions {
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
export async function runLoop(options: LoopOptions): Promise<void> {
  const { signal, delayMs, runOnce, onError } = options;
  while (!signal.aborted) {
    try {
      await runOnce();
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
    }
    await pause(options, delayMs());
  }
}

async function pause({ clock, signal, wakeUp }: LoopOptions, ms: number): Promise<void> {
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
