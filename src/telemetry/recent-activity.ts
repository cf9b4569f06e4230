import type { Clock } from "../runtime/clock.ts";

const RATE_WINDOW_SECONDS = 120;
const MAX_ERRORS = 20;
const MAX_MESSAGE_LENGTH = 300;

/** Counts the requests that ended in each of the last seconds. */
export class RequestRate {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #counts = new Array<number>(RATE_WINDOW_SECONDS).fill(0);
  #second: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#second = this.#currentSecond();
  }

  count(): void {
    this.#advance();
    const slot = this.#second % RATE_WINDOW_SECONDS;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
  }

  /** One count per second, oldest first, without the current second. */
  perSecond(): number[] {
    this.#advance();
    return Array.from(
      { length: RATE_WINDOW_SECONDS - 1 },
      (_, i) => this.#counts[(this.#second + 1 + i) % RATE_WINDOW_SECONDS] ?? 0,
    );
  }

  #advance(): void {
    const currentSecond = this.#currentSecond();
    for (let elapsed = Math.min(currentSecond - this.#second, RATE_WINDOW_SECONDS); elapsed > 0; elapsed--) {
      this.#counts[(currentSecond - elapsed + 1) % RATE_WINDOW_SECONDS] = 0;
    }
    this.#second = currentSecond;
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
