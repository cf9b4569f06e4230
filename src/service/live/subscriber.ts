import type { Random } from "../../runtime/backoff.ts";
import { backoffDelay } from "../../runtime/backoff.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { Fields } from "./frames.ts";
import { type Subscription, subscribeMessage, subscriptionKey, unsubscribeMessage } from "./messages.ts";
import type { Standing } from "./subscription-status.ts";

const ANSWER_DEADLINE_MS = 10_000;
/** After so many without an answer in a row the others do not wait as long: there may be thousands. */
const UNANSWERED_BORNE = 3;
const HURRIED_DEADLINE_MS = 2_000;
const MOST_TRIES = 3;
const PARKED_MS = 3_600_000;
const DOUBTED_MS = 600_000;
/** An ERROR that comes within this time of an unsubscribe is taken for its answer. */
const LEAVING_MS = 1_000;
const retryPace = { baseMs: 1_000, capMs: 30_000 };

/** The service understood and declined: the same request would be declined again. */
const declined: ReadonlySet<string> = new Set(["400", "401", "403", "404"]);

interface Entry {
  readonly subscription: Subscription;
  tries: number;
  requestId: number;
  /** When to ask, on the monotonic clock; infinite while there is no need to. */
  askAt: number;
  settled: boolean;
}

interface SubscriberOptions {
  readonly subscriptions: readonly Subscription[];
  readonly clock: Clock;
  readonly random: Random;
  readonly standing: Standing;
  readonly send: (text: string) => void;
  readonly onAsking: (subscription: Subscription) => void;
  /** Every subscription has had its answer, or has waited long enough for one. */
  readonly onAnswered: () => void;
  readonly onConfirmed: (subscription: Subscription) => void;
  readonly onDeclined: (subscription: Subscription) => void;
}

/**
 * Subscribes, one at a time: neither an ERROR nor SUBSCRIBED_EXCHANGE_TICKER says what it answers, so that only the one
 * request in flight can be meant. One that fails goes to the end of the queue and keeps no other waiting.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #entries = new Map<string, Entry>();
  /** To be asked for now, in this order. */
  #queue: Entry[] = [];
  #leaving: Subscription[] = [];
  #isLeaving = false;
  #inFlight: Entry | undefined;
  #unsettled = 0;
  #unanswered = 0;
  #lastRequestId = 0;
  #cancelTimer: Cancel = () => {};

  constructor(options: SubscriberOptions) {
    this.#options = options;
    const isSuspect = (each: Subscription) => Number(options.standing.isSuspect(each));
    const suspectsLast = options.subscriptions.toSorted((a, b) => isSuspect(a) - isSuspect(b));
    for (const subscription of suspectsLast) this.#add(subscription);
  }

  get isAsking(): boolean {
    return this.#inFlight !== undefined || this.#isLeaving;
  }

  /** The one in flight has been refused a token before. */
  get isAskingSuspect(): boolean {
    return this.#inFlight !== undefined && this.#options.standing.isSuspect(this.#inFlight.subscription);
  }

  /** Asks for whatever is due. */
  proceed(): void {
    if (this.isAsking) return;
    if (this.#leaving.length > 0) {
      this.#leave();
      return;
    }
    const now = this.#options.clock.monotonic();
    if (this.#queue.length === 0) this.#recall(now);
    const next = this.#queue.shift();
    if (next) {
      this.#ask(next);
      return;
    }
    if (this.#unsettled === 0) this.#options.onAnswered();
    const soonest = this.#soonest();
    if (soonest < Number.POSITIVE_INFINITY) this.#arm(soonest - now, () => this.proceed());
  }

  /** Subscribes to what is new in the list and leaves what is no longer there. */
  renew(subscriptions: readonly Subscription[]): void {
    const wanted = new Map(subscriptions.map((each) => [subscriptionKey(each), each]));
    for (const [key, entry] of this.#entries) {
      if (wanted.has(key)) continue;
      this.#entries.delete(key);
      if (!entry.settled) this.#unsettled--;
      if (entry.requestId > 0 && entry !== this.#inFlight) this.#leaving.push(entry.subscription);
    }
    this.#queue = this.#queue.filter((entry) => this.#isOurs(entry));
    for (const [key, subscription] of wanted) if (!this.#entries.has(key)) this.#add(subscription);
    this.proceed();
  }

  /** Asks again although it was answered once: its ticks have stopped. */
  again(subscription: Subscription): void {
    const entry = this.#entries.get(subscriptionKey(subscription));
    if (!entry || entry === this.#inFlight || this.#queue.includes(entry)) return;
    entry.tries = 0;
    this.#unsettle(entry);
    entry.askAt = Number.POSITIVE_INFINITY;
    this.#queue.push(entry);
    this.proceed();
  }

  confirmed(source: Subscription["source"], fields: Fields): void {
    const entry = this.#answeredBy(source, fields);
    if (!entry) return;
    this.#unanswered = 0;
    this.#settle(entry, Number.POSITIVE_INFINITY);
    if (this.#isOurs(entry)) {
      this.#queue = this.#queue.filter((queued) => queued !== entry);
      this.#options.standing.confirm(entry.subscription);
      this.#options.onConfirmed(entry.subscription);
    } else this.#leaving.push(entry.subscription);
    this.proceed();
  }

  /** Takes the blame for an ERROR; false when there is nobody to blame. */
  failed(code: string, message: string): boolean {
    const entry = this.#inFlight;
    if (!entry) return false;
    this.#unanswered = 0;
    const { clock, random, standing } = this.#options;
    const now = clock.monotonic();
    if (declined.has(code)) {
      this.#settle(entry, now + PARKED_MS);
      if (this.#isOurs(entry)) {
        standing.park(entry.subscription, code, message, entry.askAt);
        this.#options.onDeclined(entry.subscription);
      }
    } else this.#retry(entry, "refused", now + backoffDelay(entry.tries, retryPace, random));
    this.proceed();
    return true;
  }

  /** The connection ends by an ERROR that may be about the one in flight alone: the next connection asks for it last. */
  blame(): void {
    if (this.#inFlight) this.#options.standing.suspect(this.#inFlight.subscription);
  }

  stop(): void {
    this.#cancelTimer();
    this.#inFlight = undefined;
    this.#isLeaving = false;
    this.#queue = [];
    this.#leaving = [];
    this.#entries.clear();
  }

  #add(subscription: Subscription): void {
    const { standing, clock } = this.#options;
    const askAt = standing.askNotBefore(subscription);
    const settled = askAt > clock.monotonic();
    const entry = { subscription, tries: 0, requestId: 0, askAt, settled };
    this.#entries.set(subscriptionKey(subscription), entry);
    if (settled) return;
    this.#unsettled++;
    entry.askAt = Number.POSITIVE_INFINITY;
    this.#queue.push(entry);
  }

  /** Nothing confirms an unsubscribe, so the next subscribe waits until a complaint about it would have come. */
  #leave(): void {
    for (const subscription of this.#leaving) this.#options.send(unsubscribeMessage(subscription));
    this.#leaving = [];
    this.#isLeaving = true;
    this.#arm(LEAVING_MS, () => {
      this.#isLeaving = false;
      this.proceed();
    });
  }

  #ask(entry: Entry): void {
    this.#inFlight = entry;
    entry.tries++;
    entry.askAt = Number.POSITIVE_INFINITY;
    entry.requestId = ++this.#lastRequestId;
    const patience = this.#unanswered >= UNANSWERED_BORNE ? HURRIED_DEADLINE_MS : ANSWER_DEADLINE_MS;
    this.#arm(patience, () => {
      this.#unanswered++;
      this.#retry(entry, "no answer", this.#options.clock.monotonic());
      this.proceed();
    });
    this.#options.onAsking(entry.subscription);
    this.#options.send(subscribeMessage(entry.subscription, entry.requestId));
  }

  #retry(entry: Entry, reason: "no answer" | "refused", at: number): void {
    if (entry.tries < MOST_TRIES) {
      this.#land(entry);
      entry.askAt = at;
      return;
    }
    entry.tries = 0;
    this.#settle(entry, this.#options.clock.monotonic() + DOUBTED_MS);
    if (this.#isOurs(entry)) this.#options.standing.doubt(entry.subscription, reason);
  }

  #settle(entry: Entry, askAt: number): void {
    this.#land(entry);
    if (!entry.settled && this.#isOurs(entry)) this.#unsettled--;
    entry.settled = true;
    entry.askAt = askAt;
  }

  #unsettle(entry: Entry): void {
    if (entry.settled) this.#unsettled++;
    entry.settled = false;
  }

  #land(entry: Entry): void {
    if (this.#inFlight !== entry) return;
    this.#cancelTimer();
    this.#inFlight = undefined;
  }

  #isOurs(entry: Entry): boolean {
    return this.#entries.get(subscriptionKey(entry.subscription)) === entry;
  }

  /** Puts what has become due by time into the queue. */
  #recall(now: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.askAt > now) continue;
      entry.askAt = Number.POSITIVE_INFINITY;
      this.#queue.push(entry);
    }
  }

  #soonest(): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { askAt } of this.#entries.values()) if (askAt < soonest) soonest = askAt;
    return soonest;
  }

  /** Which subscription an answer is for: the one in flight, an earlier one that gave up waiting, or none of ours. */
  #answeredBy(source: Subscription["source"], fields: Fields): Entry | undefined {
    const { requestId } = fields;
    const isNumbered = source === "index" && (typeof requestId === "number" || typeof requestId === "string");
    const isMeant = (entry: Entry) => {
      if (entry.requestId === 0 || entry.subscription.source !== source) return false;
      if (isNumbered) return String(entry.requestId) === String(requestId);
      return (entry === this.#inFlight || !entry.settled) && isCompatible(entry.subscription, fields);
    };
    if (this.#inFlight && isMeant(this.#inFlight)) return this.#inFlight;
    for (const entry of this.#entries.values()) if (isMeant(entry)) return entry;
    return undefined;
  }

  #arm(ms: number, callback: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(ms, callback);
  }
}

function isCompatible(subscription: Subscription, fields: Fields): boolean {
  const agree = (ours: string | undefined, theirs: unknown) =>
    ours === undefined || theirs === undefined || theirs === null || String(theirs) === ours;
  return subscription.source === "index"
    ? agree(subscription.indexType, fields.indexType)
    : agree(subscription.exchangeId, fields.exchangeId) && agree(subscription.marketId, fields.marketId);
}
