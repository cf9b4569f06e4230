import PQueue, { PriorityQueue, type Queue, type QueueAddOptions, type RunFunction } from "p-queue";
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

/** A poll that waits longer is late: slow history pages occupy every slot. */
const MAX_POLL_WAIT_MS = 2_000;
/** How long after the last poll one slot stays reserved for the next. */
const RESERVATION_MS = 120_000;

/**
 * Limits concurrent requests and orders the waiting ones by priority. The limit adapts (AIMD): successes raise it by one per
 * round, a 429 or a timeout halves it. After a poll had to wait for slow history pages, the bulkhead reserves one slot for
 * polls as long as they keep coming: a missed snapshot cannot be fetched later.
 */
export class Bulkhead {
  readonly #queue: PQueue<FairQueue>;
  /** Everything but polls waits here first, so that history never occupies the reserved slot. */
  readonly #historyQueue: PQueue;
  #reservedUntil = Number.NEGATIVE_INFINITY;
  readonly #options: BulkheadOptions;
  #limit: number;
  /** Successful rounds before the limit grows by one. Higher after congestion, or every other increase would cause a 429. */
  #roundsPerIncrease = 1;
  #decreasedAt = Number.NEGATIVE_INFINITY;
  #nextStartAt = 0;

  constructor(options: BulkheadOptions) {
    this.#options = options;
    this.#limit = Math.min(2, options.maxConcurrency);
    this.#queue = new PQueue({ concurrency: this.#limit, queueClass: FairQueue });
    this.#historyQueue = new PQueue({ concurrency: this.#limit });
  }

  get #wholeLimit(): number {
    return Math.floor(this.#limit);
  }

  run<T>(priority: RequestPriority, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const isPoll = priority === requestPriority.head;
    const queuedAt = clock.monotonic();
    if (isPoll && queuedAt < this.#reservedUntil) this.#reserveSlot();
    const competesWithHistory = isPoll && this.#historyQueue.pending > 0;
    const runInSlot = async () => {
      this.#updateHistoryShare();
      if (competesWithHistory && clock.monotonic() - queuedAt >= MAX_POLL_WAIT_MS) this.#reserveSlot();
      await this.#waitForRateLimit(signal);
      return work();
    };
    const enqueue = () => this.#queue.add(runInSlot, { priority, signal });
    return isPoll ? enqueue() : this.#historyQueue.add(enqueue, { priority, signal });
  }

  #reserveSlot(): void {
    this.#reservedUntil = this.#options.clock.monotonic() + RESERVATION_MS;
    this.#updateHistoryShare();
  }

  /** Runs whenever a request starts, so that no timer has to end a reservation. */
  #updateHistoryShare(): void {
    const isReserved = this.#options.clock.monotonic() < this.#reservedUntil;
    const share = isReserved ? Math.max(1, this.#wholeLimit - 1) : this.#wholeLimit;
    if (this.#historyQueue.concurrency !== share) this.#historyQueue.concurrency = share;
  }

  recordSuccess(): void {
    this.#setLimit(
      Math.min(this.#options.maxConcurrency, this.#limit + 1 / (this.#limit * this.#roundsPerIncrease)),
    );
  }

  /** `startedAt` (monotonic): requests that started before the last decrease are no new evidence. */
  recordCongestion(startedAt: number): void {
    if (startedAt <= this.#decreasedAt) return;
    this.#decreasedAt = this.#options.clock.monotonic();
    this.#roundsPerIncrease = 4;
    this.#setLimit(Math.max(1, this.#limit / 2));
  }

  /** p-queue's own rate limit runs on the system clock, so this one uses the injected clock. */
  async #waitForRateLimit(signal: AbortSignal | undefined): Promise<void> {
    const { clock, maxPerSecond } = this.#options;
    if (maxPerSecond <= 0) return;
    const now = clock.monotonic();
    const start = Math.max(now, this.#nextStartAt);
    this.#nextStartAt = start + 1000 / maxPerSecond;
    if (start > now) await clock.sleep(start - now, signal);
  }

  #setLimit(limit: number): void {
    const before = this.#wholeLimit;
    this.#limit = limit;
    if (this.#wholeLimit === before) return;
    this.#queue.concurrency = this.#wholeLimit;
    this.#updateHistoryShare();
    this.#options.onLimitChange(this.#wholeLimit);
  }
}

const MAX_POLLS_IN_A_ROW = 3;

/**
 * Polls go first, but every fourth turn belongs to the others: when polls fall due faster than the rate limit allows,
 * history would otherwise wait forever.
 */
class FairQueue implements Queue<RunFunction, QueueAddOptions> {
  readonly #polls = new PriorityQueue();
  readonly #others = new PriorityQueue();
  #pollsInARow = 0;

  get size(): number {
    return this.#polls.size + this.#others.size;
  }

  enqueue(run: RunFunction, options?: Partial<QueueAddOptions>): void {
    const queue = options?.priority === requestPriority.head ? this.#polls : this.#others;
    queue.enqueue(run, options);
  }

  dequeue(): RunFunction | undefined {
    const isOthersTurn = this.#polls.size === 0 || this.#pollsInARow >= MAX_POLLS_IN_A_ROW;
    if (this.#others.size === 0) {
      this.#pollsInARow = 0;
      return this.#polls.dequeue();
    }
    this.#pollsInARow = isOthersTurn ? 0 : this.#pollsInARow + 1;
    return (isOthersTurn ? this.#others : this.#polls).dequeue();
  }

  filter(options: Readonly<Partial<QueueAddOptions>>): RunFunction[] {
    const all = { priority: 0, ...options };
    return [...this.#polls.filter(all), ...this.#others.filter(all)];
  }

  setPriority(): void {
    throw new Error("the priority of a queued request cannot change");
  }

  remove(id: string): void {
    this.#polls.remove(id);
    this.#others.remove(id);
  }
}
