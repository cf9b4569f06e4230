import { type Subscription, subscriptionKey } from "./feed-messages.ts";

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
