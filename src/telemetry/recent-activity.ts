import type { Clock } from "../runtime/clock.ts";

const SECONDS_KEPT = 120;
const ERRORS_KEPT = 20;
const LONGEST_MESSAGE = 300;

/** How many requests ended in each of the last seconds. */
export class RequestRate {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #counts = new Array<number>(SECONDS_KEPT).fill(0);
  #second: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#second = this.#present();
  }

  count(): void {
    this.#turn();
    const slot = this.#second % SECONDS_KEPT;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
  }

  /** One figure a second, the oldest first; the second under way is left out, since it is not whole. */
  perSecond(): number[] {
    this.#turn();
    return Array.from(
      { length: SECONDS_KEPT - 1 },
      (_, i) => this.#counts[(this.#second + 1 + i) % SECONDS_KEPT] ?? 0,
    );
  }

  #turn(): void {
    const present = this.#present();
    for (let passed = Math.min(present - this.#second, SECONDS_KEPT); passed > 0; passed--) {
      this.#counts[(present - passed + 1) % SECONDS_KEPT] = 0;
    }
    this.#second = present;
  }

  #present(): number {
    return Math.floor(this.#clock.monotonic() / 1000);
  }
}

export interface RecentError {
  /** The first and the last time, milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  /** Where it happened: a stream, an endpoint, a job. */
  readonly where: string;
  readonly code: string;
  /** One line without secrets. */
  readonly message: string;
}

/** The last errors; one that comes again raises its count instead of pushing the others out. */
export class RecentErrors {
  readonly #clock: Pick<Clock, "now">;
  readonly #errors = new Map<string, RecentError>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** `now`: given for what happened before this moment. */
  note(
    { where, code, message }: Pick<RecentError, "where" | "code" | "message">,
    now = this.#clock.now(),
  ): void {
    const line = message.replace(/\s+/g, " ").slice(0, LONGEST_MESSAGE);
    const key = JSON.stringify([where, code, line]);
    const known = this.#errors.get(key);
    this.#errors.delete(key);
    this.#errors.set(key, {
      firstAt: known?.firstAt ?? now,
      lastAt: now,
      count: (known?.count ?? 0) + 1,
      where,
      code,
      message: line,
    });
    const oldest = this.#errors.keys().next().value;
    if (this.#errors.size > ERRORS_KEPT && oldest !== undefined) this.#errors.delete(oldest);
  }

  /** The newest first. */
  list(): RecentError[] {
    return [...this.#errors.values()].reverse();
  }
}
