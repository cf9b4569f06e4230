import { Failure } from "../../model/failure.ts";
import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Observation } from "../../service/http/events.ts";
import { isAnswered, judge } from "./error-policy.ts";

const TRIES = 4;
const PAUSE = { baseMs: 5_000, capMs: 60_000 };
const PATIENCE_MS = 15 * 60_000;
/** Who has been answered has gone on by then: that nobody else is answered any more means nothing. */
const ALONE_MS = 120_000;

/** The pause before something is tried again: never nothing, growing, and different for everyone. */
export function pauseBefore(attempt: number, random: Random): number {
  return PAUSE.baseMs / 2 + backoffDelay(attempt, PAUSE, random);
}

export interface Waiting {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Counts every answer of the service; while it stands still, waiting costs no try. */
  readonly answers: () => number;
  /** Told of every try that failed and is not the last. */
  readonly failed?: (error: unknown) => void;
}

/** Tries until it succeeds; gives up when the service answers others, or answers this, and it fails all the same. */
export async function persistently<T>(waiting: Waiting, work: () => Promise<T>): Promise<T> {
  const { clock, random, signal, answers, failed } = waiting;
  const begun = { answers: answers(), at: clock.monotonic() };
  /** Others were answered meanwhile, lately or before they were done. */
  const areOthersAnswered = (since: number) =>
    answers() > since || (answers() > begun.answers && clock.monotonic() - begun.at > ALONE_MS);
  let tries = 0;
  for (let attempt = 0; ; attempt++) {
    const before = answers();
    try {
      return await work();
    } catch (error) {
      if (judge(error, answers()) !== "later") throw error;
      if (isAnswered(error) || areOthersAnswered(before)) tries++;
      if (tries >= TRIES) throw error;
      failed?.(error);
      await clock.sleep(pauseBefore(attempt, random), signal);
    }
  }
}

/** True once something has failed so often, while the service answered, that this run gives it up. */
export function isHopeless(failures: number): boolean {
  return failures >= TRIES;
}

/** Ends a run when the service has not answered a single request for a quarter of an hour. */
export class Patience {
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  readonly #why: () => Failure | undefined;
  #lastAnswer: number;
  #cancel: () => void = () => {};

  /** `why`: what else may have kept the run from getting on, a full disk for one. */
  constructor(clock: Clock, why: () => Failure | undefined = () => undefined) {
    this.#clock = clock;
    this.#why = why;
    this.#lastAnswer = clock.monotonic();
    this.#arm();
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  observe(observation: Observation): void {
    const isData = observation.kind === "request" && observation.endpoint !== "/oauth/token";
    if (isData && observation.status === 200) this.#lastAnswer = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  #arm(): void {
    const left = this.#lastAnswer + PATIENCE_MS - this.#clock.monotonic();
    this.#cancel = this.#clock.after(left, () => {
      if (this.#clock.monotonic() - this.#lastAnswer < PATIENCE_MS) this.#arm();
      else this.#ending.abort(this.#why() ?? gaveUp());
    });
  }
}

function gaveUp(): Failure {
  return new Failure("the service has not answered for 15 minutes", {
    family: "retry",
    code: "gave_up",
    remedy: "check the network and service.baseUrl, and run it again: what was fetched is kept",
  });
}

/** Does the work of a list with so many at once, in the order of the list. The first error ends it, once all have stopped. */
export async function workThrough<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failed = false;
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    while (next < items.length && !failed) {
      try {
        await work(items[next++] as T);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  });
  const results = await Promise.allSettled(workers);
  const broken = results.find((result) => result.status === "rejected");
  if (broken) throw broken.reason;
}
