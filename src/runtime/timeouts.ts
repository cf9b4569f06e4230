import { Failure } from "../model/failure.ts";
import type { Clock } from "./clock.ts";

/** Runs work that has a deadline. */
export type Timely = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Gives `work` so much time and no more, whether or not it heeds its signal. */
export async function within<T>(
  { clock, ms, stopping }: { clock: Clock; ms: number; stopping: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const cancel = clock.after(ms, () =>
    ending.abort(new Failure(`no answer within ${ms / 1000} seconds`, { family: "retry", code: "timeout" })),
  );
  const signal = AbortSignal.any([ending.signal, stopping]);
  const ended = new Promise<never>((_, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
  try {
    return await Promise.race([work(signal), ended]);
  } finally {
    cancel();
  }
}

/** Waits for shared work without owning it: the signal ends this caller's wait, not the work. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) {
      // Whoever else waits sees its failure; here nobody is left to.
      work.catch(() => {});
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Waits for `work`, but no longer than `ms`; false where it was not done by then. It goes on by itself. */
export async function doneWithin(
  clock: Pick<Clock, "sleep">,
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  const over = new AbortController();
  const late = clock.sleep(ms, over.signal).then(
    () => false,
    () => true,
  );
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}

/** Callers that arrive while `work` is under way share its result instead of starting it again. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= work().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
