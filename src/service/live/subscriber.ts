import { backoffDelay, type Cancel, type Clock, type Random } from "../../runtime/clock.ts";
import { ANSWER_TIMEOUT_MS, LATE_MS, parkings, REPEATED, SECOND_MS, SLOW_BACKOFF } from "../limits.ts";
import type { FrameFields } from "./frames.ts";
import { type Subscription, subscriptionMessage, type TrackedSubscription } from "./subscription-states.ts";

/** The service would reject the same request again. */
const PERMANENT_ERROR_CODES: ReadonlySet<string> = new Set(["400", "401", "403", "404"]);

/** The request for a subscription on one connection. During a swap each connection has its own. */
interface SubscribeRequest {
  readonly tracked: TrackedSubscription;
  attempts: number;
  /** The id of the last attempt; 0 before the first. */
  requestId: number;
  /** When to send it, on the monotonic clock; infinite if it is in flight or confirmed. The soonest goes first. */
  sendAt: number;
  /** Confirmed, parked or given up for now. */
  isAnswered: boolean;
}

export interface SubscriberListener {
  onSubscribing(tracked: TrackedSubscription): void;
  onConfirmed(tracked: TrackedSubscription): void;
  /** The service rejected the subscription. `until`: when to request it again, on the monotonic clock. */
  onParked(
    tracked: TrackedSubscription,
    answer: { readonly code: string; readonly message: string; readonly until: number },
  ): void;
  /** No attempt succeeded; the subscriber requests the subscription again later. */
  onUnconfirmed(tracked: TrackedSubscription, reason: "no answer" | "refused"): void;
}

interface SubscriberOptions {
  readonly subscriptions: readonly TrackedSubscription[];
  readonly clock: Clock;
  readonly random: Random;
  readonly send: (text: string) => void;
  readonly listener: SubscriberListener;
}

/**
 * Subscribes one at a time: ERROR and SUBSCRIBED_EXCHANGE_TICKER do not name their request, so only one may
 * be in flight. A subscription that fails waits until the others had their turn.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #requests = new Map<TrackedSubscription, SubscribeRequest>();
  readonly #answering = Promise.withResolvers<void>();
  /** Resolves when every subscription was answered or has timed out. */
  readonly allAnswered = this.#answering.promise;
  #toUnsubscribe: Subscription[] = [];
  #isUnsubscribing = false;
  #inFlight: SubscribeRequest | undefined;
  #consecutiveTimeouts = 0;
  #lastRequestId = 0;
  #cancelTimer: Cancel = () => {};

  constructor(options: SubscriberOptions) {
    this.#options = options;
    const suspectsLast = options.subscriptions.toSorted((a, b) => Number(a.isSuspect) - Number(b.isSuspect));
    for (const tracked of suspectsLast) this.#add(tracked);
  }

  get isAwaitingAnswer(): boolean {
    return this.#inFlight !== undefined || this.#isUnsubscribing;
  }

  /** The subscription in flight got a 401 before. */
  get isInFlightSuspect(): boolean {
    return this.#inFlight?.tracked.isSuspect ?? false;
  }

  /** Sends the next request that is due, unless one is in flight. */
  sendNext(): void {
    if (this.isAwaitingAnswer) return;
    if (this.#toUnsubscribe.length > 0) {
      this.#sendUnsubscribes();
      return;
    }
    const requests = [...this.#requests.values()];
    const soonest = Math.min(...requests.map(({ sendAt }) => sendAt));
    const now = this.#options.clock.monotonic();
    if (soonest <= now) {
      const next = requests.find(({ sendAt }) => sendAt === soonest);
      if (next) this.#sendSubscribe(next);
      return;
    }
    if (requests.every(({ isAnswered }) => isAnswered)) this.#answering.resolve();
    if (soonest < Number.POSITIVE_INFINITY) this.#setTimer(soonest - now, () => this.sendNext());
  }

  /** Subscribes to additions and unsubscribes removals, with the next `sendNext`. */
  replaceSubscriptions(subscriptions: readonly TrackedSubscription[]): void {
    const desired = new Set(subscriptions);
    for (const [tracked, request] of this.#requests) {
      if (desired.has(tracked)) continue;
      this.#requests.delete(tracked);
      if (request.requestId > 0 && request !== this.#inFlight) this.#toUnsubscribe.push(tracked.subscription);
    }
    for (const tracked of subscriptions) if (!this.#requests.has(tracked)) this.#add(tracked);
  }

  /** Requests a confirmed subscription again, because its ticks stopped. */
  resubscribe(tracked: TrackedSubscription): void {
    const request = this.#requests.get(tracked);
    if (!request || request === this.#inFlight) return;
    request.attempts = 0;
    request.isAnswered = false;
    request.sendAt = Math.min(request.sendAt, this.#options.clock.monotonic());
    this.sendNext();
  }

  handleConfirmation(source: Subscription["source"], fields: FrameFields): void {
    const request = this.#findConfirmed(source, fields);
    if (!request) return;
    const { tracked } = request;
    this.#consecutiveTimeouts = 0;
    this.#markAnswered(request, Number.POSITIVE_INFINITY);
    if (this.#isCurrent(request)) this.#options.listener.onConfirmed(tracked);
    else this.#toUnsubscribe.push(tracked.subscription);
    this.sendNext();
  }

  /** Attributes an ERROR to the request in flight; returns false if there is none. */
  handleError(code: string, message: string): boolean {
    const request = this.#inFlight;
    if (!request) return false;
    this.#consecutiveTimeouts = 0;
    const { clock, random, listener } = this.#options;
    const now = clock.monotonic();
    // What was confirmed before is asked again: a service that restarts may deny it for a moment.
    const isDoubtful = request.tracked.watch.isConfirmed && request.attempts < REPEATED;
    if (PERMANENT_ERROR_CODES.has(code) && !isDoubtful) {
      const until = now + parkings["refused subscription"].retry.baseMs;
      this.#markAnswered(request, until);
      if (this.#isCurrent(request)) listener.onParked(request.tracked, { code, message, until });
    } else this.#retry(request, "refused", now + backoffDelay(request.attempts, SLOW_BACKOFF, random));
    this.sendNext();
    return true;
  }

  /** The 401 may be about the subscription in flight, not the token: the next connection requests it last. */
  markInFlightSuspect(): void {
    if (this.#inFlight) this.#inFlight.tracked.isSuspect = true;
  }

  stop(): void {
    this.#cancelTimer();
    this.#inFlight = undefined;
    this.#isUnsubscribing = false;
    this.#toUnsubscribe = [];
    this.#requests.clear();
  }

  #add(tracked: TrackedSubscription): void {
    const { parkedUntil } = tracked;
    const isAnswered = parkedUntil > this.#options.clock.monotonic();
    this.#requests.set(tracked, { tracked, attempts: 0, requestId: 0, sendAt: parkedUntil, isAnswered });
  }

  /** The service does not confirm an unsubscribe: wait as long as it may still send an ERROR about it. */
  #sendUnsubscribes(): void {
    for (const subscription of this.#toUnsubscribe)
      this.#options.send(subscriptionMessage("UNSUBSCRIBE", subscription));
    this.#toUnsubscribe = [];
    this.#isUnsubscribing = true;
    this.#setTimer(SECOND_MS, () => {
      this.#isUnsubscribing = false;
      this.sendNext();
    });
  }

  #sendSubscribe(request: SubscribeRequest): void {
    const { clock, listener, send } = this.#options;
    this.#inFlight = request;
    request.sendAt = Number.POSITIVE_INFINITY;
    request.attempts++;
    request.requestId = ++this.#lastRequestId;
    const timeoutMs = this.#consecutiveTimeouts >= REPEATED ? LATE_MS : ANSWER_TIMEOUT_MS;
    this.#setTimer(timeoutMs, () => {
      this.#consecutiveTimeouts++;
      this.#retry(request, "no answer", clock.monotonic());
      this.sendNext();
    });
    listener.onSubscribing(request.tracked);
    send(subscriptionMessage("SUBSCRIBE", request.tracked.subscription, request.requestId));
  }

  #retry(request: SubscribeRequest, reason: "no answer" | "refused", at: number): void {
    if (request.attempts < REPEATED) {
      this.#clearInFlight(request);
      request.sendAt = at;
      return;
    }
    request.attempts = 0;
    const { baseMs } = parkings["unanswered subscription"].retry;
    this.#markAnswered(request, this.#options.clock.monotonic() + baseMs);
    if (this.#isCurrent(request)) this.#options.listener.onUnconfirmed(request.tracked, reason);
  }

  #markAnswered(request: SubscribeRequest, sendAt: number): void {
    this.#clearInFlight(request);
    request.isAnswered = true;
    request.sendAt = sendAt;
  }

  #clearInFlight(request: SubscribeRequest): void {
    if (this.#inFlight !== request) return;
    this.#cancelTimer();
    this.#inFlight = undefined;
  }

  /** False: its subscription was removed meanwhile. */
  #isCurrent(request: SubscribeRequest): boolean {
    return this.#requests.get(request.tracked) === request;
  }

  /** The request that a confirmation answers: the one in flight, or an earlier one that timed out. */
  #findConfirmed(source: Subscription["source"], fields: FrameFields): SubscribeRequest | undefined {
    const { requestId } = fields;
    const hasRequestId =
      source === "index" && (typeof requestId === "number" || typeof requestId === "string");
    const isMatch = (request: SubscribeRequest) => {
      const { subscription } = request.tracked;
      if (request.requestId === 0 || subscription.source !== source) return false;
      if (hasRequestId) return String(request.requestId) === String(requestId);
      return (request === this.#inFlight || !request.isAnswered) && matchesFields(subscription, fields);
    };
    if (this.#inFlight && isMatch(this.#inFlight)) return this.#inFlight;
    for (const request of this.#requests.values()) if (isMatch(request)) return request;
    return undefined;
  }

  #setTimer(ms: number, callback: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(ms, callback);
  }
}

function matchesFields(subscription: Subscription, fields: FrameFields): boolean {
  const agree = (requested: string | undefined, confirmed: unknown) =>
    requested === undefined ||
    confirmed === undefined ||
    confirmed === null ||
    String(confirmed) === requested;
  return subscription.source === "index"
    ? agree(subscription.indexType, fields.indexType)
    : agree(subscription.exchangeId, fields.exchangeId) && agree(subscription.marketId, fields.marketId);
}
