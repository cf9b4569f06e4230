import type { Clock } from "./clock.ts";

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
