import type { Micros } from "../../model/time.ts";
import { type FeedMessage, type Subscription, subscriptionKey } from "./messages.ts";

type Doubt = Extract<FeedMessage, { kind: "unconfirmed" }>["reason"];

/**
 * How each subscription stands, over all connections: the reader hears of changes only, and what the service has
 * refused is not asked for again at every reconnect.
 */
export class Standing {
  readonly #tell: (message: FeedMessage) => void;
  readonly #now: () => Micros;
  readonly #standing = new Map<string, string>();
  readonly #askNotBefore = new Map<string, number>();
  readonly #suspects = new Set<string>();

  constructor(tell: (message: FeedMessage) => void, now: () => Micros) {
    this.#tell = tell;
    this.#now = now;
  }

  /** The service has said yes. For a subscription that fell silent that is no news: it had said so before. */
  confirm(subscription: Subscription): void {
    const key = subscriptionKey(subscription);
    this.#askNotBefore.delete(key);
    this.#suspects.delete(key);
    if (this.#standing.get(key) !== "unconfirmed silent") this.recover(subscription);
  }

  /** Its ticks flow. */
  recover(subscription: Subscription): void {
    if (this.#enter(subscription, "confirmed"))
      this.#tell({ kind: "subscribed", subscription, at: this.#now() });
  }

  doubt(subscription: Subscription, reason: Doubt, since?: Micros): void {
    if (this.#enter(subscription, `unconfirmed ${reason}`))
      this.#tell({ kind: "unconfirmed", subscription, reason, ...(since === undefined ? {} : { since }) });
  }

  park(subscription: Subscription, code: string, message: string, askNotBefore: number): void {
    this.#askNotBefore.set(subscriptionKey(subscription), askNotBefore);
    if (code === "401") this.suspect(subscription);
    if (this.#enter(subscription, `parked ${code}`))
      this.#tell({ kind: "parked", subscription, code, message });
  }

  /** It alone may be what was refused, not the token: those that never were are to be asked for first. */
  suspect(subscription: Subscription): void {
    this.#suspects.add(subscriptionKey(subscription));
  }

  isSuspect(subscription: Subscription): boolean {
    return this.#suspects.has(subscriptionKey(subscription));
  }

  /** When a parked subscription may be asked for again, on the monotonic clock; 0 for any other. */
  askNotBefore(subscription: Subscription): number {
    return this.#askNotBefore.get(subscriptionKey(subscription)) ?? 0;
  }

  /** The connection is gone: what was confirmed has to be confirmed again. */
  lost(): void {
    for (const [key, state] of this.#standing) if (state === "confirmed") this.#standing.delete(key);
  }

  /** It is no longer subscribed to. */
  forget(subscription: Subscription): void {
    this.#standing.delete(subscriptionKey(subscription));
    this.#askNotBefore.delete(subscriptionKey(subscription));
    this.#suspects.delete(subscriptionKey(subscription));
  }

  #enter(subscription: Subscription, state: string): boolean {
    const key = subscriptionKey(subscription);
    if (this.#standing.get(key) === state) return false;
    this.#standing.set(key, state);
    return true;
  }
}

/** What the feed is to subscribe to, in this order. It may change while the feed runs. */
export class SubscriptionList {
  #current = new Map<string, Subscription>();
  readonly #listeners = new Set<(removed: readonly Subscription[]) => void>();

  constructor(subscriptions: readonly Subscription[] = []) {
    this.renew(subscriptions);
  }

  get current(): readonly Subscription[] {
    return [...this.#current.values()];
  }

  /** What is new is subscribed, what is gone is unsubscribed; all else goes on undisturbed. */
  renew(subscriptions: readonly Subscription[]): void {
    const next = new Map(subscriptions.map((each) => [subscriptionKey(each), each]));
    const removed = [...this.#current].filter(([key]) => !next.has(key)).map(([, each]) => each);
    const isSame = removed.length === 0 && next.size === this.#current.size;
    this.#current = next;
    if (!isSame) for (const listener of this.#listeners) listener(removed);
  }

  /** Tells of every change what is gone. Call the result to hear no more. */
  onChange(listener: (removed: readonly Subscription[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
