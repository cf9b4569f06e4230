import { Failure } from "../model/failure.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";

/** Over so much time the bytes are counted. */
const WINDOW_MS = 10_000;
/** A link that brings less than 16 KiB a second is as good as none; one that brings more would never finish a large page in time. */
const LEAST_BYTES = (16 * 1024 * WINDOW_MS) / 1000;

interface DeadlineOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** How far the deadline may be put off while bytes keep coming. */
  readonly longestMs: number;
  readonly onMissed: (failure: Failure) => void;
}

/** Ends an exchange at its deadline, unless its body is coming in well: then it looks again and again until it no longer does. */
export class ExchangeDeadline {
  readonly #options: DeadlineOptions;
  readonly #endsAt: number;
  #received = 0;
  #counted = 0;
  #cancel: Cancel;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    const { clock, deadlineMs, longestMs } = options;
    this.#endsAt = clock.monotonic() + Math.max(deadlineMs, longestMs);
    const first = Math.min(WINDOW_MS, deadlineMs);
    this.#cancel = clock.after(deadlineMs - first, () => this.#count(first));
  }

  received(bytes: number): void {
    this.#received += bytes;
  }

  cancel(): void {
    this.#cancel();
  }

  #count(windowMs: number): void {
    this.#counted = this.#received;
    this.#cancel = this.#options.clock.after(windowMs, () => this.#look());
  }

  #look(): void {
    const { clock, deadlineMs, longestMs, onMissed } = this.#options;
    const leftMs = this.#endsAt - clock.monotonic();
    const isComing = longestMs > deadlineMs && this.#received - this.#counted >= LEAST_BYTES;
    if (isComing && leftMs > 0) this.#count(Math.min(WINDOW_MS, leftMs));
    else onMissed(new Failure("the service did not answer in time", { family: "retry", code: "timeout" }));
  }
}
