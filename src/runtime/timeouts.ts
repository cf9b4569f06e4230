import { Failure } from "../model/failure.ts";
import type { Clock } from "./clock.ts";

/** Runs `work` with a timeout. The signal that `work` receives aborts when the time is over. */
export type TimeoutRunner = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Rejects with a `timeout` failure after `ms`, or when `stopping` aborts, even if `work` ignores its signal. */
export async function withTimeout<T>(
  { clock, ms, stopping }: { clock: Clock; ms: number; stopping: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const cancel = clock.after(ms, () =>
    timeout.abort(new Failure(`no answer within ${ms / 1000} seconds`, { code: "timeout" })),
  );
  const signal = AbortSignal.any([timeout.signal, stopping]);
  try {
    return await raceAbort(work(signal), signal);
  } finally {
    cancel();
  }
}

/** Waits for shared work: the signal ends this caller's wait, not the work. */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) {
      // This caller no longer waits, so a failure of `work` must not become an unhandled rejection.
      work.catch(() => {});
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Waits at most `ms` for `work`. Returns false if `work` still runs then. Rejects if `work` rejects in time. */
export function finishesWithin(clock: Pick<Clock, "after">, ms: number, work: Promise<unknown>) {
  return new Promise<boolean>((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(false));
    work.then(() => resolve(true), reject).finally(cancel);
  });
}

/** Callers that arrive while `work` runs share its result instead of starting it again. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let inFlight: Promise<T> | undefined;
  return () => {
    inFlight ??= work().finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };
}

/** Ends the process after `ms` if something, such as a thread that hangs, keeps it alive until then. */
export function exitAfter(ms: number, code: number): void {
  setTimeout(() => process.exit(code), ms).unref();
}
