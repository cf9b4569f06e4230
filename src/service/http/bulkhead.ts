import PQueue from "p-queue";
import type { Clock } from "../../runtime/clock.ts";
import { type RequestPriority, requestPriority } from "./request.ts";

interface BulkheadOptions {
  readonly clock: Clock;
  /** Upper bound of the adaptive limit. */
  readonly maxConcurrency: number;
  /** 0: no rate limit. */
  readonly maxPerSecond: number;
  readonly onLimitChange: (limit: number) => void;
}

/** A poll that waits longer is late, because slow history pages occupy every slot. It then reserves one slot. */
const MAX_POLL_WAIT_MS = 2_000;
/** How long after the last poll one slot stays reserved for the next. */
const RESERVATION_MS = 120_000;
/** If polls alone exceed the rate limit, every fourth request is still a history request. */
const POLLS_PER_HISTORY_REQUEST = 3;

/**
 * Limits concurrent requests. The limit adapts (AIMD): successes raise it by one per round, a 429 or a timeout halves it.
 * Polls go before history, because a missed snapshot cannot be fetched later.
 */
export class Bulkhead {
  readonly #options: BulkheadOptions;
  /** Holds one task per request in flight. Polls wait here. */
  readonly #slots: PQueue;
  /** History waits here for its share of the slots, the most urgent first. */
  readonly #history: PQueue;
  #limit: number;
  /** Successful rounds before the limit grows by one. Higher after congestion, so that fewer increases cause a 429. */
  #roundsPerIncrease = 1;
  #decreasedAt = Number.NEGATIVE_INFINITY;
  #reservedUntil = Number.NEGATIVE_INFINITY;
  #nextStartAt = 0;
  /** Fair queueing: the last place given to a poll, the last given to history, and the highest place started so far. */
  readonly #lastPlace = { poll: 0, history: 0, started: 0 };

  constructor(options: BulkheadOptions) {
    this.#options = options;
    this.#limit = Math.min(2, options.maxConcurrency);
    this.#slots = new PQueue({ concurrency: this.#limit });
    this.#history = new PQueue({ concurrency: this.#limit });
  }

  run<T>(priority: RequestPriority, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const isPoll = priority === requestPriority.head;
    // Only history requests make a poll late: if polls wait for each other, a reservation does not help.
    const lateAt =
      this.#history.pending > 0
        ? this.#options.clock.monotonic() + MAX_POLL_WAIT_MS
        : Number.POSITIVE_INFINITY;
    const takeSlot = () => {
      const place = this.#nextPlace(isPoll ? "poll" : "history");
      const runInSlot = async () => {
        this.#lastPlace.started = Math.max(this.#lastPlace.started, place);
        if (isPoll) this.#extendReservation(lateAt);
        this.#applyLimit();
        await this.#waitForRateLimit(signal);
        return work();
      };
      return this.#slots.add(runInSlot, { priority: -place, signal });
    };
    return isPoll ? takeSlot() : this.#history.add(takeSlot, { priority, signal });
  }

  recordSuccess(): void {
    const { maxConcurrency } = this.#options;
    this.#setLimit(Math.min(maxConcurrency, this.#limit + 1 / (this.#limit * this.#roundsPerIncrease)));
  }

  /** `startedAt` (monotonic): requests that started before the last decrease are no new evidence. */
  recordCongestion(startedAt: number): void {
    if (startedAt <= this.#decreasedAt) return;
    this.#decreasedAt = this.#options.clock.monotonic();
    this.#roundsPerIncrease = 4;
    this.#setLimit(Math.max(1, this.#limit / 2));
  }

  /** Fair queueing: a history request takes as many places in the order as several polls. */
  #nextPlace(kind: "poll" | "history"): number {
    const cost = kind === "poll" ? 1 : POLLS_PER_HISTORY_REQUEST;
    this.#lastPlace[kind] = Math.max(this.#lastPlace[kind], this.#lastPlace.started) + cost;
    return this.#lastPlace[kind];
  }

  /** A late poll reserves one slot for polls; the reservation lasts as long as polls keep coming. */
  #extendReservation(lateAt: number): void {
    const now = this.#options.clock.monotonic();
    if (now >= lateAt || now < this.#reservedUntil) this.#reservedUntil = now + RESERVATION_MS;
  }

  /** The only place where requests are delayed to limit their rate. p-queue's own rate limit uses the system clock. */
  async #waitForRateLimit(signal: AbortSignal | undefined): Promise<void> {
    const { clock, maxPerSecond } = this.#options;
    if (maxPerSecond <= 0) return;
    const now = clock.monotonic();
    const start = Math.max(now, this.#nextStartAt);
    this.#nextStartAt = start + 1000 / maxPerSecond;
    if (start > now) await clock.sleep(start - now, signal);
  }

  #setLimit(limit: number): void {
    const before = Math.floor(this.#limit);
    this.#limit = limit;
    if (Math.floor(limit) === before) return;
    this.#applyLimit();
    this.#options.onLimitChange(Math.floor(limit));
  }

  /** Also runs whenever a request starts, so that no timer has to end a reservation. */
  #applyLimit(): void {
    const slots = Math.floor(this.#limit);
    const isReserved = this.#options.clock.monotonic() < this.#reservedUntil;
    const historySlots = isReserved ? Math.max(1, slots - 1) : slots;
    // Setting p-queue's concurrency starts waiting tasks, so set it only if it changes.
    if (this.#slots.concurrency !== slots) this.#slots.concurrency = slots;
    if (this.#history.concurrency !== historySlots) this.#history.concurrency = historySlots;
  }
}
