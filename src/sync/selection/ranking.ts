import { exitCode, Failure } from "../../model/failure.ts";
import { streamTable } from "../../model/streams.ts";
import type { Random } from "../../runtime/backoff.ts";
import { finishesWithin } from "../../runtime/timeouts.ts";
import type { SyncContext } from "../context/context.ts";
import { isInvalidResponse } from "../context/error-policy.ts";
import { retryUntilDone } from "../context/retry.ts";
import { fetchMarketCaps } from "../fetch/market-caps.ts";

/** The rest of the run begins without a ranking that takes longer. */
const FIRST_WAIT_MS = 30_000;
/** After the rest of the run, an endpoint that has failed before gets this much longer. */
const LAST_WAIT_MS = 20_000;

interface RankingFetchOptions {
  readonly random: Random;
  /** With a cadence the market capitalisations are also stored. */
  readonly cadenceSeconds: number | undefined;
}

/**
 * Fetches the ranking in the background: a dead `/market-cap` must not hold up what needs no ranking, or what a stored
 * one can select.
 */
export class RankingFetch {
  readonly #context: SyncContext;
  readonly #cancellation = new AbortController();
  readonly #firstFailure = Promise.withResolvers<void>();
  readonly #ids: Promise<readonly string[]>;
  #isDone = false;
  #lastError: unknown;

  constructor(context: SyncContext, { random, cadenceSeconds }: RankingFetchOptions) {
    this.#context = context;
    const signal = AbortSignal.any([context.signal, this.#cancellation.signal]);
    const cancellable = { ...context, signal };
    const onRetry = (error: unknown) => {
      this.#lastError = error;
      this.#firstFailure.resolve();
    };
    const fetch = () => fetchMarketCaps(cancellable, cadenceSeconds);
    this.#ids = retryUntilDone(cancellable, random, fetch, onRetry);
    // Whoever waits for the ranking gets its failure.
    this.#ids
      .catch(() => {})
      .finally(() => {
        this.#isDone = true;
        this.#firstFailure.resolve();
      });
  }

  /** Returns the asset ids, largest first; undefined after a failed try that is being repeated. Throws a final failure. */
  async waitForFirstTry(): Promise<readonly string[] | undefined> {
    const ended = Promise.race([this.#ids, this.#firstFailure.promise]);
    await finishesWithin(this.#context.clock, FIRST_WAIT_MS, ended);
    return this.#isDone ? this.#ids : undefined;
  }

  /** Waits a little longer, when nothing else is left to do. Throws if there is still no ranking. */
  async waitForLastTry(): Promise<readonly string[]> {
    try {
      await finishesWithin(this.#context.clock, LAST_WAIT_MS, this.#ids);
      if (this.#isDone) return await this.#ids;
    } finally {
      this.cancel();
    }
    throw rankingFailure(this.#lastError);
  }

  cancel(): void {
    this.#cancellation.abort(new Failure("the ranking is no longer needed", { code: "stopped" }));
  }

  /** What went wrong so far, while tries are under way. */
  get failure(): Failure {
    return rankingFailure(this.#lastError);
  }
}

/** The same code as if the circuit breaker had given the endpoint up: all else was fetched meanwhile. A doubtful list says so itself. */
function rankingFailure(lastError: unknown): Failure {
  if (lastError instanceof Failure && isInvalidResponse(lastError)) return lastError;
  const { endpoint } = streamTable.market_caps;
  const why = lastError instanceof Error ? lastError.message : "no answer";
  return new Failure(`${endpoint} keeps failing while other endpoints answer (${why})`, {
    code: "endpoint_failing",
    remedy: "the rest is synced; run again later, and if it lasts, contact the service's operator",
    exit: exitCode.incomplete,
    cause: lastError,
  });
}
