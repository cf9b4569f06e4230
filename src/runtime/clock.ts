import { uptime } from "node:os";

export type Cancel = () => void;

/**
 * Every moment and every wait of the program comes from here, so that a test turns time by hand and a
 * suspended laptop, a stepped wall clock and a leap forward are three different things.
 */
export interface Clock {
  /** Wall clock, milliseconds since 1970 UTC. May jump in both directions. */
  now(): number;
  /** Milliseconds that never go back; stands still while the machine is suspended. */
  monotonic(): number;
  /** Milliseconds since boot, time spent suspended included. */
  boottime(): number;
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `callback` once after `ms`. */
  after(ms: number, callback: () => void): Cancel;
  /**
   * Says that something is under way which is not a timer (a request, a commit). A turned clock does not
   * move while anything is held; on the system clock it costs nothing. Call the result once to let go.
   */
  hold(): Cancel;
  /** The opposite of `hold`, for a server that keeps a client waiting on purpose: that wait is one for time. */
  waive(): Cancel;
}

/** setTimeout fires at once beyond 2^31-1 ms (24.8 days), so longer waits are cut into pieces. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const nothing: Cancel = () => {};

/** Reading the boot time costs microseconds, which counts where it is asked for with every live tick. */
const LOOK_FOR_SUSPENSION_MS = 50;
/** The system tells its boot time in hundredths of a second: less than this is no suspension. */
const SUSPENSION_MS = 20;

/** The boot clock as a distance to the monotonic one, which grows by every suspension and by nothing else. */
const boot = { distance: Number.NEGATIVE_INFINITY, lookedAt: Number.NEGATIVE_INFINITY };

function boottime(): number {
  const now = performance.now();
  if (now - boot.lookedAt >= LOOK_FOR_SUSPENSION_MS) {
    boot.lookedAt = now;
    const distance = uptime() * 1000 - now;
    if (distance > boot.distance + SUSPENSION_MS) boot.distance = distance;
  }
  return now + boot.distance;
}

/** `sleep` in terms of `after`, for every clock. */
export function sleepOn(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
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
  boottime,
  sleep: (ms, signal) => sleepOn(systemClock, ms, signal),
  after(ms, callback) {
    let timer: NodeJS.Timeout;
    const arm = (left: number) => {
      timer = setTimeout(
        () => (left > LONGEST_TIMER_MS ? arm(left - LONGEST_TIMER_MS) : callback()),
        Math.max(0, Math.min(left, LONGEST_TIMER_MS)),
      );
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
  hold: () => nothing,
  waive: () => nothing,
};
