import { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import { backoffDelay, type Random } from "../../runtime/loop.ts";
import type { ClientEvent } from "../../service/http/client-events.ts";
import { classifyError, isInvalidResponse } from "./error-policy.ts";

/** So many failures while the service was answering are enough. */
export const MAX_TRIES = 4;
const RETRY_BACKOFF = { baseMs: 5_000, maxMs: 60_000 };
export const SILENCE_TIMEOUT_MS = 15 * 60_000;
/** After this time, count every success since the start: the other requests may be done, so no recent one may exist. */
const COUNT_ALL_SUCCESSES_AFTER_MS = 120_000;

/** The delay before a retry: never zero, growing, jittered. */
export function retryDelayMs(attempt: number, random: Random): number {
  return RETRY_BACKOFF.baseMs / 2 + backoffDelay(attempt, RETRY_BACKOFF, random);
}

/** What a `SyncContext` has. */
interface RetryContext {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** While the number of successful responses does not grow, the service counts as down and no try counts. */
  readonly stats: { readonly successCount: number };
}

/**
 * Retries `work` until it succeeds. Gives up after MAX_TRIES failures during which the service was answering. `onRetry`:
 * called after each failed try but the last.
 */
export async function retryUntilDone<T>(
  { clock, signal, stats }: RetryContext,
  random: Random,
  work: () => Promise<T>,
  onRetry?: (error: unknown) => void,
): Promise<T> {
  const start = { successes: stats.successCount, at: clock.monotonic() };
  /** Whether other requests succeeded meanwhile. */
  const othersSucceeded = (since: number) =>
    stats.successCount > since ||
    (stats.successCount > start.successes && clock.monotonic() - start.at > COUNT_ALL_SUCCESSES_AFTER_MS);
  let tries = 0;
  for (let attempt = 0; ; attempt++) {
    const successesBefore = stats.successCount;
    try {
      return await work();
    } catch (error) {
      if (classifyError(error, stats.successCount) !== "retry") throw error;
      if (isInvalidResponse(error) || othersSucceeded(successesBefore)) tries++;
      if (tries >= MAX_TRIES) throw error;
      onRetry?.(error);
      await clock.sleep(retryDelayMs(attempt, random), signal);
    }
  }
}

/** Ends a run when no request has succeeded for a quarter of an hour. */
export class SilenceTimeout {
  readonly #clock: Clock;
  readonly #timeout = new AbortController();
  readonly #findCause: () => Failure | undefined;
  readonly #findLastFailure: () => Failure | undefined;
  #lastSuccessAt: number;
  #cancel: () => void = () => {};

  /**
   * `findCause`: returns the cause if it is not the service, for example a full disk. `findLastFailure`: of the requests.
   */
  constructor(
    clock: Clock,
    findCause: () => Failure | undefined = () => undefined,
    findLastFailure: () => Failure | undefined = () => undefined,
  ) {
    this.#clock = clock;
    this.#findCause = findCause;
    this.#findLastFailure = findLastFailure;
    this.#lastSuccessAt = clock.monotonic();
    this.#startTimer();
  }

  get signal(): AbortSignal {
    return this.#timeout.signal;
  }

  onEvent(event: ClientEvent): void {
    const isData = event.kind === "request" && event.endpoint !== "/oauth/token";
    // What cannot be stored is no success: a scan thread reads pages while the ingest thread is blocked.
    if (isData && event.status === 200 && !this.#findCause()) this.#lastSuccessAt = this.#clock.monotonic();
  }

  cancel(): void {
    this.#cancel();
  }

  #startTimer(): void {
    const silentMs = this.#clock.monotonic() - this.#lastSuccessAt;
    if (silentMs >= SILENCE_TIMEOUT_MS)
      this.#timeout.abort(this.#findCause() ?? silenceFailure(this.#findLastFailure()));
    // Whole milliseconds: a rest of a rounding error would never pass.
    else this.#cancel = this.#clock.after(Math.ceil(SILENCE_TIMEOUT_MS - silentMs), () => this.#startTimer());
  }
}

function silenceFailure(lastFailure: Failure | undefined): Failure {
  const why = lastFailure ? `; last failure: ${lastFailure.message}` : "";
  const remedy = lastFailure?.remedy ?? "check the network and service.baseUrl";
  return new Failure(`the service has not answered for ${SILENCE_TIMEOUT_MS / 60_000} minutes${why}`, {
    code: "gave_up",
    remedy: `${remedy}; then run again: what was fetched stays stored`,
  });
}

/** Runs `work` for each item, `concurrency` at a time. After an error it starts no more items, and throws at the end. */
export async function runConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items.values();
  const errors: unknown[] = [];
  const run = async () => {
    for (const item of remaining) {
      if (errors.length > 0) return;
      await work(item).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, run));
  if (errors.length > 0) throw errors[0];
}
