import type { Micros } from "../../model/time.ts";
import { type Subscription, subscriptionKey } from "./messages.ts";

export type SubscriptionState =
  /** Not answered yet. */
  | "requested"
  /** Its ticks arrive. */
  | "live"
  /** It was live when the connection was lost. */
  | "interrupted"
  /** The service did not answer; the feed requests it again later. */
  | "no answer"
  /** The service answered with a temporary error; the feed requests it again later. */
  | "refused"
  /** Its ticks stopped although REST has newer ones. */
  | "silent"
  /** The service rejects it; the feed requests it again after an hour. */
  | "parked";

type SubscriptionEvent =
  /** SUBSCRIBED arrived. */
  | "confirmed"
  /** A tick arrived after a silence. */
  | "recovered"
  | "no answer"
  | "refused"
  | "silent"
  | "parked"
  | "disconnected";

function nextState(state: SubscriptionState, event: SubscriptionEvent): SubscriptionState {
  if (event === "disconnected") return state === "live" ? "interrupted" : state;
  // A service that sends no ticks may still confirm: only a tick proves that they arrive again.
  if (event === "confirmed") return state === "silent" ? state : "live";
  return event === "recovered" ? "live" : event;
}

/** When ticks of a confirmed subscription arrived, and what was done about a silence. */
export interface TickWatch {
  /** When a silence counts as stale, on the monotonic clock; infinite until the feed requests it again. */
  staleAt: number;
  lastTickTs: Micros | undefined;
  /** REST had no newer tick up to this timestamp, so none is missing before it. */
  quietUntil: Micros | undefined;
  remediesTried: number;
  /** An exchange was silent for too long, and REST has not shown whether its market was quiet. */
  hasUnverifiedSilence: boolean;
}

/** One subscription and what is known about it across connections. */
export class TrackedSubscription {
  readonly subscription: Subscription;
  readonly key: string;
  /** Undefined while no ticks are due: never confirmed, parked or removed. */
  watch: TickWatch | undefined;
  /** A 401 may be about this subscription and not about the token: the next connection requests it last. */
  isSuspect = false;
  state: SubscriptionState = "requested";
  #parkedCode: string | undefined;
  /** When to request it again, on the monotonic clock; 0 if it was never parked or is confirmed. */
  parkedUntil = 0;

  constructor(subscription: Subscription) {
    this.subscription = subscription;
    this.key = subscriptionKey(subscription);
  }

  /** Returns whether the state changed. */
  apply(event: Exclude<SubscriptionEvent, "confirmed" | "parked">): boolean {
    return this.#transition(event);
  }

  /** Returns whether the state changed to `live`. */
  confirm(): boolean {
    this.parkedUntil = 0;
    this.isSuspect = false;
    return this.#transition("confirmed");
  }

  /** Returns whether the state or the service's code for it changed. */
  park(code: string, until: number): boolean {
    this.parkedUntil = until;
    this.isSuspect ||= code === "401";
    this.watch = undefined;
    const isSameCode = this.#parkedCode === code;
    this.#parkedCode = code;
    return this.#transition("parked") || !isSameCode;
  }

  #transition(event: SubscriptionEvent): boolean {
    const before = this.state;
    this.state = nextState(before, event);
    return this.state !== before;
  }
}

type SilenceListener = (tracked: TrackedSubscription, since: Micros) => void;

/**
 * The subscriptions that the feed requests, in this order, and the state of each. The list may change while
 * the feed runs.
 */
export class SubscriptionStates {
  #tracked = new Map<string, TrackedSubscription>();
  readonly #listeners = new Set<() => void>();
  readonly #silenceListeners = new Set<SilenceListener>();
  isConnected = false;

  constructor(subscriptions: readonly Subscription[] = []) {
    this.replace(subscriptions);
  }

  get current(): readonly TrackedSubscription[] {
    return [...this.#tracked.values()];
  }

  get(key: string): TrackedSubscription | undefined {
    return this.#tracked.get(key);
  }

  /** The feed subscribes to additions, unsubscribes removals and leaves the rest alone. */
  replace(subscriptions: readonly Subscription[]): void {
    const before = this.#tracked;
    this.#tracked = new Map();
    for (const subscription of subscriptions) {
      const key = subscriptionKey(subscription);
      this.#tracked.set(key, before.get(key) ?? new TrackedSubscription(subscription));
    }
    const removed = [...before.values()].filter(({ key }) => !this.#tracked.has(key));
    for (const tracked of removed) tracked.watch = undefined;
    if (removed.length === 0 && this.#tracked.size === before.size) return;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener after every change of the list. Call the result to stop listening. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** REST has index ticks that the subscription has not delivered since `since`, at least of one index. */
  reportSilent(subscription: Subscription, since: Micros): void {
    const tracked = this.#tracked.get(subscriptionKey(subscription));
    if (tracked) for (const listener of this.#silenceListeners) listener(tracked, since);
  }

  /** Calls the listener with each silence that REST has shown. Call the result to stop listening. */
  onSilent(listener: SilenceListener): () => void {
    this.#silenceListeners.add(listener);
    return () => this.#silenceListeners.delete(listener);
  }

  /** Call it when a feed starts: discards the states of an earlier feed. */
  reset(): void {
    this.isConnected = false;
    for (const { key, subscription } of this.current)
      this.#tracked.set(key, new TrackedSubscription(subscription));
  }

  connect(): void {
    this.isConnected = true;
  }

  /** Call it when the connection was lost: the next connection has to confirm each subscription again. */
  disconnect(): void {
    this.isConnected = false;
    for (const tracked of this.#tracked.values()) tracked.apply("disconnected");
  }
}
