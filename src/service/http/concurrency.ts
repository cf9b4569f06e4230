import PQueue, { PriorityQueue, type Queue, type QueueAddOptions, type RunFunction } from "p-queue";
import type { Clock } from "../../runtime/clock.ts";
import { type Priority, priority as priorities, priority } from "./request.ts";

export interface RequestSlotsOptions {
  readonly clock: Clock;
  /** The most that may ever be under way at once. */
  readonly ceiling: number;
  /** 0: as many as the service answers cleanly. */
  readonly maxPerSecond: number;
  readonly limitChanged: (limit: number) => void;
}

/** A poll that waits for longer is late: slow pages have taken every slot. */
const BORNE_WAIT_MS = 2_000;
/** So long after the last poll a slot is kept free for the next. */
const RESERVED_MS = 120_000;

/**
 * Who may use the network next, and how many at once. The number grows by one with rounds of clean answers and
 * halves when the service says "too many" or stays silent; never below one. Once a poll had to wait for slow pages of history,
 * one slot is kept free of them as long as polls keep coming: what is missed of the latest cannot be asked for later.
 */
export class RequestSlots {
  readonly #queue: PQueue<FairQueue>;
  /** Those that can wait stand here first: never so many of them go through that a poll finds no slot. */
  readonly #patient: PQueue;
  #reservedUntil = Number.NEGATIVE_INFINITY;
  readonly #options: RequestSlotsOptions;
  #limit: number;
  /** Clean rounds that one more slot wants: more of them once the service has shown a limit, or every other probe of it fails. */
  #roundsToGrow = 1;
  #halvedAt = Number.NEGATIVE_INFINITY;
  #nextStart = 0;

  constructor(options: RequestSlotsOptions) {
    this.#options = options;
    this.#limit = Math.min(2, options.ceiling);
    this.#queue = new PQueue({ concurrency: this.#limit, queueClass: FairQueue });
    this.#patient = new PQueue({ concurrency: this.#limit });
  }

  get #whole(): number {
    return Math.floor(this.#limit);
  }

  run<T>(priority: Priority, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const isPoll = priority === priorities.head;
    const askedAt = clock.monotonic();
    if (isPoll && askedAt < this.#reservedUntil) this.#reserve();
    const isBesideHistory = isPoll && this.#patient.pending > 0;
    const paced = async () => {
      this.#share();
      if (isBesideHistory && clock.monotonic() - askedAt >= BORNE_WAIT_MS) this.#reserve();
      await this.#turn(signal);
      return work();
    };
    const enter = () => this.#queue.add(paced, { priority, signal });
    return isPoll ? enter() : this.#patient.add(enter, { priority, signal });
  }

  #reserve(): void {
    this.#reservedUntil = this.#options.clock.monotonic() + RESERVED_MS;
    this.#share();
  }

  /** Looked at whenever a request begins: no timer has to end a reservation. */
  #share(): void {
    const isReserved = this.#options.clock.monotonic() < this.#reservedUntil;
    const share = isReserved ? Math.max(1, this.#whole - 1) : this.#whole;
    if (this.#patient.concurrency !== share) this.#patient.concurrency = share;
  }

  clean(): void {
    this.#setLimit(Math.min(this.#options.ceiling, this.#limit + 1 / (this.#limit * this.#roundsToGrow)));
  }

  /** `startedAt` (monotonic): what was already under way at the last halving is no new evidence. */
  congested(startedAt: number): void {
    if (startedAt <= this.#halvedAt) return;
    this.#halvedAt = this.#options.clock.monotonic();
    this.#roundsToGrow = 4;
    this.#setLimit(Math.max(1, this.#limit / 2));
  }

  /** p-queue's own interval runs on the system clock, so the pace is kept here. */
  async #turn(signal: AbortSignal | undefined): Promise<void> {
    const { clock, maxPerSecond } = this.#options;
    if (maxPerSecond <= 0) return;
    const now = clock.monotonic();
    const start = Math.max(now, this.#nextStart);
    this.#nextStart = start + 1000 / maxPerSecond;
    if (start > now) await clock.sleep(start - now, signal);
  }

  #setLimit(limit: number): void {
    const before = this.#whole;
    this.#limit = limit;
    if (this.#whole === before) return;
    this.#queue.concurrency = this.#whole;
    this.#share();
    this.#options.limitChanged(this.#whole);
  }
}

/** Whoever is no poll waits for so many of them, at most. */
const POLLS_IN_A_ROW = 3;

/**
 * Polls go first, and of every four turns one is left to the others: where polls fall due faster than the service may be
 * asked, history would wait for ever.
 */
export class FairQueue implements Queue<RunFunction, QueueAddOptions> {
  readonly #polls = new PriorityQueue();
  readonly #others = new PriorityQueue();
  #inARow = 0;

  get size(): number {
    return this.#polls.size + this.#others.size;
  }

  enqueue(run: RunFunction, options?: Partial<QueueAddOptions>): void {
    const lane = options?.priority === priority.head ? this.#polls : this.#others;
    lane.enqueue(run, options);
  }

  dequeue(): RunFunction | undefined {
    const isOthersTurn = this.#polls.size === 0 || this.#inARow >= POLLS_IN_A_ROW;
    if (this.#others.size === 0) {
      this.#inARow = 0;
      return this.#polls.dequeue();
    }
    this.#inARow = isOthersTurn ? 0 : this.#inARow + 1;
    return (isOthersTurn ? this.#others : this.#polls).dequeue();
  }

  filter(options: Readonly<Partial<QueueAddOptions>>): RunFunction[] {
    const all = { priority: 0, ...options };
    return [...this.#polls.filter(all), ...this.#others.filter(all)];
  }

  setPriority(): void {
    throw new Error("a request keeps the priority that it came with");
  }

  remove(id: string): void {
    this.#polls.remove(id);
    this.#others.remove(id);
  }
}
