import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { finishesWithin } from "../runtime/timeouts.ts";

/** Closes one part. A part that closes, but not cleanly, calls `onFailure`. */
type StopStep = (onFailure: (failure: unknown) => void) => unknown;

/** Runs all steps at once: whatever happens to one, the others run. Returns whether all of them succeeded within the time. */
export async function runStopSteps(
  { clock, log, withinMs }: { clock: Clock; log: Log; withinMs: number },
  steps: Readonly<Record<string, StopStep>>,
): Promise<boolean> {
  // Keeps a manual clock from advancing while sockets and threads close.
  const release = clock.beginWork();
  let isClean = true;
  const closing = Object.entries(steps).map(async ([step, close]) => {
    const onFailure = (failure: unknown) => {
      isClean = false;
      const error = failure instanceof Failure ? failure.summary : String(failure);
      log.warn({ step, error }, "stop step failed");
    };
    try {
      await close(onFailure);
    } catch (error) {
      onFailure(error);
    }
  });
  const hasFinished = await finishesWithin(clock, withinMs, Promise.all(closing)).finally(release);
  return hasFinished && isClean;
}
