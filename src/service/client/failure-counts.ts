import type { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";

const MINUTE_MS = 60_000;
const COUNTED_MINUTES = 10;

interface CountedMinute {
  /** Monotonic. */
  readonly startedAt: number;
  readonly counts: Map<string, number>;
  last: Failure;
}

/**
 * Counts the attempts that failed and were retried, by failure code: most of them cause no error that anyone sees. Logs one
 * line per minute in which some failed, when that minute is over.
 */
export class FailureCounts {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #log: Log;
  #minutes: CountedMinute[] = [];
  #isLogged = true;

  constructor(clock: Pick<Clock, "monotonic">, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  record(failure: Failure): void {
    this.logFinishedMinute();
    const now = this.#clock.monotonic();
    let minute = this.#minutes.at(-1);
    if (!minute || now - minute.startedAt >= MINUTE_MS) {
      minute = { startedAt: now, counts: new Map(), last: failure };
      this.#minutes = [...this.#minutes.slice(1 - COUNTED_MINUTES), minute];
      this.#isLogged = false;
    }
    minute.last = failure;
    minute.counts.set(failure.code, (minute.counts.get(failure.code) ?? 0) + 1);
  }

  /** The failures of about the last ten minutes, by code; the most frequent first. */
  get recent(): Readonly<Record<string, number>> {
    const oldest = this.#clock.monotonic() - COUNTED_MINUTES * MINUTE_MS;
    const sums = new Map<string, number>();
    for (const { startedAt, counts } of this.#minutes)
      if (startedAt > oldest)
        for (const [code, count] of counts) sums.set(code, (sums.get(code) ?? 0) + count);
    return Object.fromEntries([...sums].sort(([, a], [, b]) => b - a));
  }

  /** Call often. `isEnding`: logs the current minute too. */
  logFinishedMinute(isEnding = false): void {
    const minute = this.#minutes.at(-1);
    const isOver = minute && (isEnding || this.#clock.monotonic() - minute.startedAt >= MINUTE_MS);
    if (this.#isLogged || !isOver) return;
    this.#isLogged = true;
    const { counts, last } = minute;
    this.#log.warn(
      { failures: Object.fromEntries(counts), lastFailure: last.summary },
      "requests failed and were retried",
    );
  }
}
