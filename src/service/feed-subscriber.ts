import { backoffDelay } from "../runtime/backoff.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Fields } from "./feed-frames.ts";
import { type Subscription, subscribeMessage, subscriptionKey } from "./feed-messages.ts";
import type { Standing } from "./feed-standing.ts";

const ANSWER_DEADLINE_MS = 10_000;
const MOST_TRIES = 3;
const PARKED_MS = 3_600_000;
const DOUBTED_MS = 600_000;
const retryPace = { baseMs: 1_000, capMs: 30_000 };

/** The service understood and declined: the same request would be declined again. */
const declined: ReadonlySet<string> = new Set(["400", "403", "404"]);

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
  readonly onAsking: () => void;
  /** Every subscription has had its answer, or has waited long enough for one. */
  readonly onAnswered: () => void;
  readonly onConfirmed: (subscription: Subscription) => void;
}

/**
 * Subscribes, one at a time: neither an ERROR nor SUBSCRIBED_EXCHANGE_TICKER says what it answers, so that only the one
 * request in flight can be meant.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #entries: Map<string, Entry>;
  #inFlight: Entry | undefined;
  #lastRequestId = 0;
  #cancelTimer: Cancel = () => {};

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#entries = new Map(
      options.subscriptions.map((subscription) => {
        const askAt = options.standing.askNotBefore(subscription);
        return [
          subscriptionKey(subscription),
          { subscription, tries: 0, requestId: 0, askAt, settled: askAt > options.clock.monotonic() },
        ];
      }),
    );
  }

  get isAsking(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Asks for whatever is due. */
  proceed(): void {
    if (this.#inFlight) return;
    const now = this.#options.clock.monotonic();
    let next: Entry | undefined;
    for (const entry of this.#entries.values()) if (!next || entry.askAt < next.askAt) next = entry;
    if (next && next.askAt <= now) {
      this.#ask(next);
      return;
    }
    if ([...this.#entries.values()].every(({ settled }) => settled)) this.#options.onAnswered();
    if (next && next.askAt < Number.POSITIVE_INFINITY) this.#arm(next.askAt - now, () => this.proceed());
  }

  /** Asks again although it was answered once: its ticks have stopped. */
  again(subscription: Subscription): void {
    const entry = this.#entries.get(subscriptionKey(subscription));
    if (!entry || entry === this.#inFlight) return;
    entry.tries = 0;
    entry.settled = false;
    entry.askAt = this.#options.clock.monotonic();
    this.proceed();
  }

  confirmed(source: Subscription["source"], fields: Fields): void {
    const entry = this.#answeredBy(source, fields);
    if (!entry) return;
    this.#settle(entry, Number.POSITIVE_INFINITY);
    this.#options.standing.confirm(entry.subscription);
    this.#options.onConfirmed(entry.subscription);
    this.proceed();
  }

  /** Takes the blame for an ERROR; false when there is nobody to blame. */
  failed(code: string, message: string): boolean {
    const entry = this.#inFlight;
    if (!entry) return false;
    const { clock, random, standing } = this.#options;
    const now = clock.monotonic();
    if (declined.has(code)) {
      this.#settle(entry, now + PARKED_MS);
      standing.park(entry.subscription, code, message, entry.askAt);
    } else this.#retry(entry, "refused", now + backoffDelay(entry.tries, retryPace, random));
    this.proceed();
    return true;
  }

  stop(): void {
    this.#cancelTimer();
    this.#inFlight = undefined;
    this.#entries.clear();
  }

  #ask(entry: Entry): void {
    this.#inFlight = entry;
    entry.tries++;
    entry.requestId = ++this.#lastRequestId;
    this.#arm(ANSWER_DEADLINE_MS, () => {
      this.#retry(entry, "no answer", this.#options.clock.monotonic());
      this.proceed();
    });
    this.#options.onAsking();
    this.#options.send(subscribeMessage(entry.subscription, entry.requestId));
  }

  #retry(entry: Entry, reason: "no answer" | "refused", at: number): void {
    if (entry.tries < MOST_TRIES) {
      if (this.#inFlight === entry) this.#inFlight = undefined;
      entry.askAt = at;
      return;
    }
    entry.tries = 0;
    this.#settle(entry, this.#options.clock.monotonic() + DOUBTED_MS);
    this.#options.standing.doubt(entry.subscription, reason);
  }

  #settle(entry: Entry, askAt: number): void {
    if (this.#inFlight === entry) {
      this.#cancelTimer();
      this.#inFlight = undefined;
    }
    entry.settled = true;
    entry.askAt = askAt;
  }

  /** Which subscription an answer is for: the one in flight, an earlier one that gave up waiting, or none of ours. */
  #answeredBy(source: Subscription["source"], fields: Fields): Entry | undefined {
    const { requestId } = fields;
    const candidates = this.#inFlight
      ? [this.#inFlight, ...this.#entries.values()]
      : [...this.#entries.values()];
    const asked = candidates.filter((entry) => entry.requestId > 0 && entry.subscription.source === source);
    if (source === "index" && (typeof requestId === "number" || typeof requestId === "string"))
      return asked.find((entry) => String(entry.requestId) === String(requestId));
    return asked.find(
      (entry) => (entry === this.#inFlight || !entry.settled) && isCompatible(entry.subscription, fields),
    );
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
