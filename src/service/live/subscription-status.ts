import type { Micros } from "../../model/time.ts";
import { type FeedMessage, type Subscription, subscriptionKey } from "./messages.ts";

type UnconfirmedReason = Extract<FeedMessage, { kind: "unconfirmed" }>["reason"];

/**
 * The state of each subscription across connections. Reports changes only; parked subscriptions survive a
 * reconnect.
 */
export class SubscriptionStatus {
  readonly #report: (message: FeedMessage) => void;
  readonly #now: () => Micros;
  readonly #states = new Map<string, string>();
  readonly #parkedUntil = new Map<string, number>();
  readonly #suspects = new Set<string>();

  constructor(report: (message: FeedMessage) => void, now: () => Micros) {
    this.#report = report;
    this.#now = now;
  }

  /**
   * The service confirmed it. For a stale subscription that proves nothing: only a tick does, see `recover`.
   */
  confirm(subscription: Subscription): void {
    const key = subscriptionKey(subscription);
    this.#parkedUntil.delete(key);
    this.#suspects.delete(key);
    if (this.#states.get(key) !== "unconfirmed silent") this.recover(subscription);
  }

  /** Its ticks arrive. */
  recover(subscription: Subscription): void {
    if (this.#setState(subscription, "confirmed"))
      this.#report({ kind: "subscribed", subscription, at: this.#now() });
  }

  markUnconfirmed(subscription: Subscription, reason: UnconfirmedReason, missingSince?: Micros): void {
    if (this.#setState(subscription, `unconfirmed ${reason}`))
      this.#report({
        kind: "unconfirmed",
        subscription,
        reason,
        ...(missingSince === undefined ? {} : { missingSince }),
      });
  }

  park(subscription: Subscription, code: string, message: string, parkedUntil: number): void {
    this.#parkedUntil.set(subscriptionKey(subscription), parkedUntil);
    if (code === "401") this.markSuspect(subscription);
    if (this.#setState(subscription, `parked ${code}`))
      this.#report({ kind: "parked", subscription, code, message });
  }

  /** A 401 may be about this subscription and not about the token: the next connection requests it last. */
  markSuspect(subscription: Subscription): void {
    this.#suspects.add(subscriptionKey(subscription));
  }

  isSuspect(subscription: Subscription): boolean {
    return this.#suspects.has(subscriptionKey(subscription));
  }

  /** When to request a parked subscription again, on the monotonic clock; 0 if it is not parked. */
  parkedUntil(subscription: Subscription): number {
    return this.#parkedUntil.get(subscriptionKey(subscription)) ?? 0;
  }

  /** The connection was lost: the next one has to confirm again. */
  clearConfirmed(): void {
    for (const [key, state] of this.#states) if (state === "confirmed") this.#states.delete(key);
  }

  remove(subscription: Subscription): void {
    this.#states.delete(subscriptionKey(subscription));
    this.#parkedUntil.delete(subscriptionKey(subscription));
    this.#suspects.delete(subscriptionKey(subscription));
  }

  #setState(subscription: Subscription, state: string): boolean {
    const key = subscriptionKey(subscription);
    if (this.#states.get(key) === state) return false;
    this.#states.set(key, state);
    return true;
  }
}

/** The subscriptions that the feed requests, in this order. The list may change while the feed runs. */
export class SubscriptionList {
  #current = new Map<string, Subscription>();
  readonly #listeners = new Set<(removed: readonly Subscription[]) => void>();

  constructor(subscriptions: readonly Subscription[] = []) {
    this.replace(subscriptions);
  }

  get current(): readonly Subscription[] {
    return [...this.#current.values()];
  }

  /** The feed subscribes to additions, unsubscribes removals and leaves the rest alone. */
  replace(subscriptions: readonly Subscription[]): void {
    const next = new Map(subscriptions.map((each) => [subscriptionKey(each), each]));
    const removed = [...this.#current].filter(([key]) => !next.has(key)).map(([, each]) => each);
    const isSame = removed.length === 0 && next.size === this.#current.size;
    this.#current = next;
    if (!isSame) for (const listener of this.#listeners) listener(removed);
  }

  /** Calls the listener with the removals of every change. Call the result to stop listening. */
  onChange(listener: (removed: readonly Subscription[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
