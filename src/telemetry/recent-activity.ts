import type { Clock } from "../runtime/clock.ts";

const RATE_WINDOW_SECONDS = 120;
const MAX_ERRORS = 20;
const MAX_MESSAGE_LENGTH = 300;

/** Counts the requests that ended in each of the last seconds. */
export class RequestRate {
  readonly #clock: Pick<Clock, "monotonic">;
  /** By the second; the oldest first. */
  readonly #counts = new Map<number, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  count(): void {
    const second = this.#currentSecond();
    this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
    const [oldest = second] = this.#counts.keys();
    if (this.#counts.size > RATE_WINDOW_SECONDS) this.#counts.delete(oldest);
  }

  /** One count per second, oldest first, without the current second. */
  perSecond(): number[] {
    const first = this.#currentSecond() - RATE_WINDOW_SECONDS + 1;
    return Array.from({ length: RATE_WINDOW_SECONDS - 1 }, (_, i) => this.#counts.get(first + i) ?? 0);
  }

  #currentSecond(): number {
    return Math.floor(this.#clock.monotonic() / 1000);
  }
}

export interface RecentError {
  /** First and last occurrence, milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  /** Where it happened: a stream, an endpoint, a job. */
  readonly where: string;
  readonly code: string;
  /** One line without secrets. */
  readonly message: string;
}

/** The last distinct errors; a repeated error increments its count. */
export class RecentErrors {
  readonly #clock: Pick<Clock, "now">;
  readonly #errors = new Map<string, RecentError>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Pass `now` for an error that happened earlier. */
  record(
    { where, code, message }: Pick<RecentError, "where" | "code" | "message">,
    now = this.#clock.now(),
  ): void {
    const oneLine = message.replace(/\s+/g, " ").slice(0, MAX_MESSAGE_LENGTH);
    const key = JSON.stringify([where, code, oneLine]);
    const known = this.#errors.get(key);
    this.#errors.delete(key);
    this.#errors.set(key, {
      firstAt: known?.firstAt ?? now,
      lastAt: now,
      count: (known?.count ?? 0) + 1,
      where,
      code,
      message: oneLine,
    });
    const oldest = this.#errors.keys().next().value;
    if (this.#errors.size > MAX_ERRORS && oldest !== undefined) this.#errors.delete(oldest);
  }

  /** Newest first. */
  list(): RecentError[] {
    return [...this.#errors.values()].reverse();
  }
}
