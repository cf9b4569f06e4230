import type { LimitReason, ServiceCondition } from "../../model/status/service-condition.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { LATE_MS, MAX_STARTS_BETWEEN, RESERVATION_MS } from "../limits.ts";
import { type LoadSign, Pace } from "./pace.ts";
import { type RequestPriority, requestPriority } from "./request.ts";

interface BulkheadOptions {
  readonly clock: Clock;
  readonly maxConcurrency: number;
  /** 0: no configured limit, only what the service accepts. */
  readonly maxPerSecond: number;
  /** Something else limits the requests now. Figures and short pauses alone are no news. */
  readonly onLimitChange: (limits: RequestLimits) => void;
}

type RequestLimits = Pick<
  ServiceCondition,
  "concurrency" | "per_second" | "reason" | "limit" | "limit_since"
>;

interface WaitingRequest {
  readonly priority: RequestPriority;
  /** Called when it is the request's turn; false: it leaves the queue without a start. */
  readonly admit: () => boolean;
  /** Without a slot it is dismissed. */
  readonly leave: (hasSlot: boolean) => void;
}

/** The kinds of requests, the most urgent first. */
const kinds = ["snapshot", "head", "history"] as const;
type RequestKind = (typeof kinds)[number];

function kindOf(priority: RequestPriority): RequestKind {
  if (priority >= requestPriority.snapshot) return "snapshot";
  return priority >= requestPriority.head ? "head" : "history";
}

/**
 * Orders the requests, and limits how many are in flight and how many start per second. Snapshots go first
 * (docs/decisions/snapshots-first.md).
 */
export class Bulkhead {
  readonly #options: BulkheadOptions;
  readonly #pace: Pace;
  /** Each with the most urgent first. */
  readonly #waiting: Record<RequestKind, WaitingRequest[]> = { snapshot: [], head: [], history: [] };
  /** Requests that started since the last one of the kind. */
  readonly #startsSince: Record<RequestKind, number> = { snapshot: 0, head: 0, history: 0 };
  #running = 0;
  #runningHistory = 0;
  #reservedUntil = Number.NEGATIVE_INFINITY;
  #isWaitingForRate = false;
  #cancelTimer: Cancel = () => {};
  #limitReason: LimitReason = "settings";

  constructor(options: BulkheadOptions) {
    this.#options = options;
    this.#pace = new Pace(options.maxConcurrency, options.maxPerSecond);
  }

  /** What bounds the requests at present. */
  get limits(): RequestLimits {
    const { clock } = this.#options;
    const now = clock.monotonic();
    const { atOnce, perSecond } = this.#pace;
    const { reason, text = null, since } = this.#pace.describe(now);
    return {
      concurrency: atOnce,
      per_second: perSecond === Number.POSITIVE_INFINITY ? null : perSecond,
      reason,
      limit: text,
      limit_since: since === undefined ? null : new Date(clock.now() - (now - since)).toISOString(),
    };
  }

  /** Runs `work` in a slot, as soon as it is its turn. Returns undefined if `admit` refuses it then. */
  async run<T>(
    priority: RequestPriority,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
    admit: () => boolean = () => true,
  ): Promise<T | undefined> {
    const isPoll = kindOf(priority) !== "history";
    if (!(await this.#takeSlot(priority, signal, admit))) return undefined;
    try {
      return await work();
    } finally {
      this.#running--;
      if (!isPoll) this.#runningHistory--;
      this.#startWaiting();
    }
  }

  recordSign(sign: LoadSign, startedAt: number, retryAfterMs = 0): void {
    const now = this.#options.clock.monotonic();
    this.#pace.recordAnswer({ sign, now, startedAt, retryAfterMs });
    this.#reportLimits();
    this.#startWaiting();
  }

  /** Resolves when the request holds a slot, or is dismissed (false). */
  #takeSlot(priority: RequestPriority, signal: AbortSignal | undefined, admit: () => boolean) {
    const { clock } = this.#options;
    const kind = kindOf(priority);
    const isPoll = kind !== "history";
    // Only history requests make a poll late: if polls wait for each other, a reservation does not help.
    const lateAt = this.#runningHistory > 0 ? clock.monotonic() + LATE_MS : Number.POSITIVE_INFINITY;
    return new Promise<boolean>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const queue = this.#waiting[kind];
      const leave = (hasSlot: boolean) => {
        signal?.removeEventListener("abort", abort);
        if (hasSlot) {
          this.#running++;
          if (isPoll) this.#extendReservation(lateAt);
          else this.#runningHistory++;
        }
        resolve(hasSlot);
      };
      const request = { priority, admit, leave };
      const abort = () => {
        queue.splice(queue.indexOf(request), 1);
        this.#startWaiting();
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      const at = queue.findIndex((other) => other.priority < priority);
      queue.splice(at < 0 ? queue.length : at, 0, request);
      this.#startWaiting();
    });
  }

  /** Starts requests in their order, as many as the limits allow. The order is decided only when one may start. */
  #startWaiting(): void {
    this.#cancelTimer();
    const { clock } = this.#options;
    for (let kind = this.#nextKind(); kind !== undefined; kind = this.#nextKind()) {
      const { startAt } = this.#pace;
      const now = clock.monotonic();
      if (startAt > now) {
        this.#isWaitingForRate = true;
        this.#cancelTimer = clock.after(startAt - now, () => this.#startWaiting());
        return;
      }
      const request = this.#waiting[kind].shift();
      if (request?.admit() === false) {
        // It takes neither a slot nor a start of the rate: those are for requests that are sent.
        request.leave(false);
        continue;
      }
      this.#pace.recordStart({ now, hadToWait: this.#isWaitingForRate, inFlight: this.#running + 1 });
      this.#isWaitingForRate = false;
      for (const each of kinds) this.#startsSince[each] = each === kind ? 0 : this.#startsSince[each] + 1;
      request?.leave(true);
    }
  }

  /** Of the next request; undefined if none may start. */
  #nextKind(): RequestKind | undefined {
    const slots = this.#pace.atOnce;
    if (this.#running >= slots) return undefined;
    const isReserved = this.#options.clock.monotonic() < this.#reservedUntil;
    const historySlots = isReserved ? Math.max(1, slots - 1) : slots;
    const mayStart = (kind: RequestKind) =>
      this.#waiting[kind].length > 0 && (kind !== "history" || this.#runningHistory < historySlots);
    const waiting = kinds.filter(mayStart);
    return waiting.findLast((kind) => this.#startsSince[kind] >= MAX_STARTS_BETWEEN) ?? waiting[0];
  }

  /** A late poll reserves one slot for polls; the reservation lasts as long as polls keep coming. */
  #extendReservation(lateAt: number): void {
    const now = this.#options.clock.monotonic();
    if (now >= lateAt || now < this.#reservedUntil) this.#reservedUntil = now + RESERVATION_MS;
  }

  #reportLimits(): void {
    const { limits } = this;
    if (limits.reason === this.#limitReason || limits.reason === "paused") return;
    this.#limitReason = limits.reason;
    this.#options.onLimitChange(limits);
  }
}
