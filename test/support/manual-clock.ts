import { type Cancel, type Clock, sleepUsing } from "../../src/runtime/clock.ts";

interface Timer {
  due: number;
  order: number;
  callback: () => void;
}

/**
 * A clock that tests control. `advance` moves time by hand; `runUntil` jumps from timer to timer whenever no
 * work is in progress, so that hours of backoff against a real server take milliseconds.
 */
export class ManualClock implements Clock {
  #elapsed = 0;
  #wallOffset: number;
  #suspended = 0;
  #busy = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();
  readonly #creepMs: () => number;

  /** `creepMs`: how far time moves on at each reading, as on a busy machine. Default: not at all. */
  constructor(start: number | string = "2026-03-01T12:00:00Z", creepMs: () => number = () => 0) {
    this.#wallOffset = typeof start === "string" ? Date.parse(start) : start;
    this.#creepMs = creepMs;
  }

  now(): number {
    return this.#wallOffset + this.#read() + this.#suspended;
  }

  monotonic(): number {
    return this.#read();
  }

  boottime(): number {
    return this.#read() + this.#suspended;
  }

  #read(): number {
    this.#elapsed += this.#creepMs();
    return this.#elapsed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepUsing(this, ms, signal);
  }

  after(ms: number, callback: () => void): Cancel {
    const timer = { due: this.#elapsed + Math.max(0, ms), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  beginWork(): Cancel {
    return this.#changeBusy(1);
  }

  beginWait(): Cancel {
    return this.#changeBusy(-1);
  }

  get busyCount(): number {
    return this.#busy;
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  /** Changes only the wall clock, as an operator or NTP does. */
  stepWallClock(ms: number): void {
    this.#wallOffset += ms;
  }

  /** Suspends the machine: wall and boot time advance, monotonic time and timers do not. */
  suspend(ms: number): void {
    this.#suspended += ms;
  }

  /** Advances by `ms`, fires due timers in order, and flushes the event loop after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await flushEventLoop();
    for (let next = this.#next(); next !== undefined && next.due <= end; next = this.#next()) {
      this.#fire(next);
      await flushEventLoop();
    }
    this.#elapsed = end;
    await flushEventLoop();
  }

  /** Advances by `ms` and fires due timers at once: nothing else can happen meanwhile. */
  jump(ms: number): void {
    const end = this.#elapsed + ms;
    for (let next = this.#next(); next !== undefined && next.due <= end; next = this.#next())
      this.#fire(next);
    this.#elapsed = end;
  }

  /** Jumps from timer to timer until `promise` is settled. */
  async runUntil<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const done = promise.finally(() => {
      isSettled = true;
    });
    done.catch(() => {});
    for (let idleRounds = 0; !isSettled; ) {
      await flushEventLoop();
      const next = this.#next();
      if (isSettled) break;
      if (this.#busy <= 0 && next !== undefined) {
        idleRounds = 0;
        this.#fire(next);
      } else if (++idleRounds > MAX_SPIN_ROUNDS) await waitRealMillisecond();
    }
    return done;
  }

  #fire(timer: Timer): void {
    this.#timers.delete(timer);
    this.#elapsed = Math.max(this.#elapsed, timer.due);
    timer.callback();
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.due < first.due || (timer.due === first.due && timer.order < first.order))
        first = timer;
    }
    return first;
  }

  #changeBusy(step: 1 | -1): Cancel {
    this.#busy += step;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#busy -= step;
    };
  }
}

/** Most work ends within a fraction of a millisecond: a timer would wait longer. */
const MAX_SPIN_ROUNDS = 5;

/** Runs a few event loop turns: enough for promise chains and for loopback sockets that are ready. */
async function flushEventLoop(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function waitRealMillisecond(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
