import type { Random } from "../../runtime/backoff.ts";
import { backoffDelay } from "../../runtime/backoff.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { FrameFields } from "./frames.ts";
import { type Subscription, subscribeMessage, subscriptionKey, unsubscribeMessage } from "./messages.ts";
import type { SubscriptionStatus } from "./subscription-status.ts";

const ANSWER_TIMEOUT_MS = 10_000;
/** After so many timeouts in a row the others wait less: there may be thousands. */
const MAX_CONSECUTIVE_TIMEOUTS = 3;
const SHORT_ANSWER_TIMEOUT_MS = 2_000;
const MAX_ATTEMPTS = 3;
const PARKED_RETRY_INTERVAL_MS = 3_600_000;
const UNCONFIRMED_RETRY_INTERVAL_MS = 600_000;
/** An ERROR within this time after an unsubscribe counts as its answer. */
const UNSUBSCRIBE_GRACE_MS = 1_000;
const retryBackoff = { baseMs: 1_000, maxMs: 30_000 };

/** The service would reject the same request again. */
const PERMANENT_ERROR_CODES: ReadonlySet<string> = new Set(["400", "401", "403", "404"]);

interface SubscriptionEntry {
  readonly subscription: Subscription;
  attempts: number;
  requestId: number;
  /** When to request it next, on the monotonic clock; infinite if it needs no request. */
  requestAt: number;
  /** Confirmed, parked or given up for now. */
  isAnswered: boolean;
}

interface SubscriberOptions {
  readonly subscriptions: readonly Subscription[];
  readonly clock: Clock;
  readonly random: Random;
  readonly status: SubscriptionStatus;
  readonly send: (text: string) => void;
  readonly onSubscribing: (subscription: Subscription) => void;
  /** Every subscription was answered or has timed out. */
  readonly onAllAnswered: () => void;
  readonly onConfirmed: (subscription: Subscription) => void;
  readonly onParked: (subscription: Subscription) => void;
}

/**
 * Subscribes one at a time: ERROR and SUBSCRIBED_EXCHANGE_TICKER do not name their request, so only one may
 * be in flight. A subscription that fails goes to the end of the queue.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #entries = new Map<string, SubscriptionEntry>();
  /** To be requested now, in this order. */
  #queue: SubscriptionEntry[] = [];
  #toUnsubscribe: Subscription[] = [];
  #isUnsubscribing = false;
  #inFlight: SubscriptionEntry | undefined;
  #pendingCount = 0;
  #consecutiveTimeouts = 0;
  #lastRequestId = 0;
  #cancelTimer: Cancel = () => {};

  constructor(options: SubscriberOptions) {
    this.#options = options;
    const isSuspect = (each: Subscription) => Number(options.status.isSuspect(each));
    const suspectsLast = options.subscriptions.toSorted((a, b) => isSuspect(a) - isSuspect(b));
    for (const subscription of suspectsLast) this.#add(subscription);
  }

  get isAwaitingAnswer(): boolean {
    return this.#inFlight !== undefined || this.#isUnsubscribing;
  }

  /** The one in flight got a 401 before. */
  get isInFlightSuspect(): boolean {
    return this.#inFlight !== undefined && this.#options.status.isSuspect(this.#inFlight.subscription);
  }

  /** Sends the next request that is due, unless one is in flight. */
  sendNext(): void {
    if (this.isAwaitingAnswer) return;
    if (this.#toUnsubscribe.length > 0) {
      this.#sendUnsubscribes();
      return;
    }
    const now = this.#options.clock.monotonic();
    if (this.#queue.length === 0) this.#enqueueDue(now);
    const next = this.#queue.shift();
    if (next) {
      this.#sendSubscribe(next);
      return;
    }
    if (this.#pendingCount === 0) this.#options.onAllAnswered();
    const soonest = this.#nextRequestAt();
    if (soonest < Number.POSITIVE_INFINITY) this.#setTimer(soonest - now, () => this.sendNext());
  }

  /** Subscribes to additions and unsubscribes removals. */
  replaceSubscriptions(subscriptions: readonly Subscription[]): void {
    const desired = new Map(subscriptions.map((each) => [subscriptionKey(each), each]));
    for (const [key, entry] of this.#entries) {
      if (desired.has(key)) continue;
      this.#entries.delete(key);
      if (!entry.isAnswered) this.#pendingCount--;
      if (entry.requestId > 0 && entry !== this.#inFlight) this.#toUnsubscribe.push(entry.subscription);
    }
    this.#queue = this.#queue.filter((entry) => this.#isCurrent(entry));
    for (const [key, subscription] of desired) if (!this.#entries.has(key)) this.#add(subscription);
    this.sendNext();
  }

  /** Requests it again although the service confirmed it: its ticks stopped. */
  resubscribe(subscription: Subscription): void {
    const entry = this.#entries.get(subscriptionKey(subscription));
    if (!entry || entry === this.#inFlight || this.#queue.includes(entry)) return;
    entry.attempts = 0;
    this.#markPending(entry);
    entry.requestAt = Number.POSITIVE_INFINITY;
    this.#queue.push(entry);
    this.sendNext();
  }

  handleConfirmation(source: Subscription["source"], fields: FrameFields): void {
    const entry = this.#findConfirmed(source, fields);
    if (!entry) return;
    this.#consecutiveTimeouts = 0;
    this.#markAnswered(entry, Number.POSITIVE_INFINITY);
    if (this.#isCurrent(entry)) {
      this.#queue = this.#queue.filter((queued) => queued !== entry);
      this.#options.status.confirm(entry.subscription);
      this.#options.onConfirmed(entry.subscription);
    } else this.#toUnsubscribe.push(entry.subscription);
    this.sendNext();
  }

  /** Attributes an ERROR to the request in flight; returns false if there is none. */
  handleError(code: string, message: string): boolean {
    const entry = this.#inFlight;
    if (!entry) return false;
    this.#consecutiveTimeouts = 0;
    const { clock, random, status } = this.#options;
    const now = clock.monotonic();
    if (PERMANENT_ERROR_CODES.has(code)) {
      this.#markAnswered(entry, now + PARKED_RETRY_INTERVAL_MS);
      if (this.#isCurrent(entry)) {
        status.park(entry.subscription, code, message, entry.requestAt);
        this.#options.onParked(entry.subscription);
      }
    } else this.#retry(entry, "refused", now + backoffDelay(entry.attempts, retryBackoff, random));
    this.sendNext();
    return true;
  }

  /** The ERROR that closes the connection may concern only this one: the next connection requests it last. */
  markInFlightSuspect(): void {
    if (this.#inFlight) this.#options.status.markSuspect(this.#inFlight.subscription);
  }

  stop(): void {
    this.#cancelTimer();
    this.#inFlight = undefined;
    this.#isUnsubscribing = false;
    this.#queue = [];
    this.#toUnsubscribe = [];
    this.#entries.clear();
  }

  #add(subscription: Subscription): void {
    const { status, clock } = this.#options;
    const requestAt = status.parkedUntil(subscription);
    const isAnswered = requestAt > clock.monotonic();
    const entry = { subscription, attempts: 0, requestId: 0, requestAt, isAnswered };
    this.#entries.set(subscriptionKey(subscription), entry);
    if (isAnswered) return;
    this.#pendingCount++;
    entry.requestAt = Number.POSITIVE_INFINITY;
    this.#queue.push(entry);
  }

  /** The service does not confirm an unsubscribe: wait until an ERROR about it would have come. */
  #sendUnsubscribes(): void {
    for (const subscription of this.#toUnsubscribe) this.#options.send(unsubscribeMessage(subscription));
    this.#toUnsubscribe = [];
    this.#isUnsubscribing = true;
    this.#setTimer(UNSUBSCRIBE_GRACE_MS, () => {
      this.#isUnsubscribing = false;
      this.sendNext();
    });
  }

  #sendSubscribe(entry: SubscriptionEntry): void {
    this.#inFlight = entry;
    entry.attempts++;
    entry.requestAt = Number.POSITIVE_INFINITY;
    entry.requestId = ++this.#lastRequestId;
    const timeoutMs =
      this.#consecutiveTimeouts >= MAX_CONSECUTIVE_TIMEOUTS ? SHORT_ANSWER_TIMEOUT_MS : ANSWER_TIMEOUT_MS;
    this.#setTimer(timeoutMs, () => {
      this.#consecutiveTimeouts++;
      this.#retry(entry, "no answer", this.#options.clock.monotonic());
      this.sendNext();
    });
    this.#options.onSubscribing(entry.subscription);
    this.#options.send(subscribeMessage(entry.subscription, entry.requestId));
  }

  #retry(entry: SubscriptionEntry, reason: "no answer" | "refused", at: number): void {
    if (entry.attempts < MAX_ATTEMPTS) {
      this.#clearInFlight(entry);
      entry.requestAt = at;
      return;
    }
    entry.attempts = 0;
    this.#markAnswered(entry, this.#options.clock.monotonic() + UNCONFIRMED_RETRY_INTERVAL_MS);
    if (this.#isCurrent(entry)) this.#options.status.markUnconfirmed(entry.subscription, reason);
  }

  #markAnswered(entry: SubscriptionEntry, requestAt: number): void {
    this.#clearInFlight(entry);
    if (!entry.isAnswered && this.#isCurrent(entry)) this.#pendingCount--;
    entry.isAnswered = true;
    entry.requestAt = requestAt;
  }

  #markPending(entry: SubscriptionEntry): void {
    if (entry.isAnswered) this.#pendingCount++;
    entry.isAnswered = false;
  }

  #clearInFlight(entry: SubscriptionEntry): void {
    if (this.#inFlight !== entry) return;
    this.#cancelTimer();
    this.#inFlight = undefined;
  }

  #isCurrent(entry: SubscriptionEntry): boolean {
    return this.#entries.get(subscriptionKey(entry.subscription)) === entry;
  }

  #enqueueDue(now: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.requestAt > now) continue;
      entry.requestAt = Number.POSITIVE_INFINITY;
      this.#queue.push(entry);
    }
  }

  #nextRequestAt(): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { requestAt } of this.#entries.values()) soonest = Math.min(soonest, requestAt);
    return soonest;
  }

  /** The one in flight, an earlier one that timed out, or none. */
  #findConfirmed(source: Subscription["source"], fields: FrameFields): SubscriptionEntry | undefined {
    const { requestId } = fields;
    const hasRequestId =
      source === "index" && (typeof requestId === "number" || typeof requestId === "string");
    const isMatch = (entry: SubscriptionEntry) => {
      if (entry.requestId === 0 || entry.subscription.source !== source) return false;
      if (hasRequestId) return String(entry.requestId) === String(requestId);
      return (entry === this.#inFlight || !entry.isAnswered) && matchesFields(entry.subscription, fields);
    };
    if (this.#inFlight && isMatch(this.#inFlight)) return this.#inFlight;
    for (const entry of this.#entries.values()) if (isMatch(entry)) return entry;
    return undefined;
  }

  #setTimer(ms: number, callback: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(ms, callback);
  }
}

function matchesFields(subscription: Subscription, fields: FrameFields): boolean {
  const agree = (ours: string | undefined, theirs: unknown) =>
    ours === undefined || theirs === undefined || theirs === null || String(theirs) === ours;
  return subscription.source === "index"
    ? agree(subscription.indexType, fields.indexType)
    : agree(subscription.exchangeId, fields.exchangeId) && agree(subscription.marketId, fields.marketId);
}
