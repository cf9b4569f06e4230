import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";

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
