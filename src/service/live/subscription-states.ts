import { EventEmitter } from "node:events";
import type { Micros } from "../../model/time.ts";

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
  | Extract<SubscriptionState, "no answer" | "refused" | "silent" | "parked">
  /** SUBSCRIBED arrived. */
  | "confirmed"
  /** A tick arrived after a silence. */
  | "recovered"
  | "disconnected";

function nextState(state: SubscriptionState, event: SubscriptionEvent): SubscriptionState {
  if (event === "disconnected") return state === "live" ? "interrupted" : state;
  // A service that sends no ticks may still confirm: only a tick proves that they arrive again.
  if (event === "confirmed") return state === "silent" ? state : "live";
  return event === "recovered" ? "live" : event;
}

/** When ticks of a subscription arrived, and what was done about a silence. */
export class TickWatch {
  /** Not since it was parked or removed: then none is due. */
  isConfirmed = false;
  /** When a silence counts as stale, on the monotonic clock; infinite until the feed requests it again. */
  staleAt = Number.POSITIVE_INFINITY;
  lastTickTs: Micros | undefined;
  /** REST had no newer tick up to this timestamp, so none is missing before it. */
  quietUntil: Micros | undefined;
  remediesTried = 0;
  /** An exchange was silent for too long, and REST has not shown whether its market was quiet. */
  hasUnverifiedSilence = false;

  /** The timestamp up to which no tick is missing; undefined if unknown. */
  get missingSince(): Micros | undefined {
    const { lastTickTs, quietUntil } = this;
    if (lastTickTs === undefined || quietUntil === undefined) return lastTickTs ?? quietUntil;
    return Math.max(lastTickTs, quietUntil);
  }
}

/** One subscription and what is known about it across connections. */
export class TrackedSubscription {
  readonly subscription: Subscription;
  readonly key: string;
  watch = new TickWatch();
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

  /** Returns whether the state changed to `live`. */
  confirm(): boolean {
    this.parkedUntil = 0;
    this.isSuspect = false;
    return this.apply("confirmed");
  }

  /** Returns whether the state or the service's code for it changed. */
  park(code: string, until: number): boolean {
    this.parkedUntil = until;
    this.isSuspect ||= code === "401";
    this.watch = new TickWatch();
    const isSameCode = this.#parkedCode === code;
    this.#parkedCode = code;
    return this.apply("parked") || !isSameCode;
  }

  /** Returns whether the state changed. */
  apply(event: SubscriptionEvent): boolean {
    const before = this.state;
    this.state = nextState(before, event);
    return this.state !== before;
  }
}

/**
 * The subscriptions that the feed requests, in this order, and the state of each. The list may change while the feed runs. `silent`:
 * REST has index ticks that the subscription has not delivered since then, at least of one index.
 */
export class SubscriptionStates extends EventEmitter<{
  change: [];
  silent: [tracked: TrackedSubscription, since: Micros];
}> {
  #tracked = new Map<string, TrackedSubscription>();
  isConnected = false;

  constructor(subscriptions: readonly Subscription[] = []) {
    super();
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
    for (const tracked of removed) tracked.watch = new TickWatch();
    if (removed.length === 0 && this.#tracked.size === before.size) return;
    this.emit("change");
  }

  reportSilent(subscription: Subscription, since: Micros): void {
    const tracked = this.#tracked.get(subscriptionKey(subscription));
    if (tracked) this.emit("silent", tracked, since);
  }

  /** Call it when a feed starts: discards the states of an earlier feed. */
  reset(): void {
    this.isConnected = false;
    for (const { key, subscription } of this.current)
      this.#tracked.set(key, new TrackedSubscription(subscription));
  }

  /** Call it when the connection was lost: the next connection has to confirm each subscription again. */
  disconnect(): void {
    this.isConnected = false;
    for (const tracked of this.#tracked.values()) tracked.apply("disconnected");
  }
}

/** All ticks of one index, or of all indices of one type. */
interface IndexSubscription {
  readonly source: "index";
  readonly indexType?: string | undefined;
  readonly indexId?: string | undefined;
}

/** All ticks of one exchange, of one market across exchanges, or of one market on one exchange. */
export interface ExchangeSubscription {
  readonly source: "exchange";
  readonly exchangeId?: string | undefined;
  readonly marketId?: string | undefined;
}

export type Subscription = IndexSubscription | ExchangeSubscription;

/** What the feed reports to its reader, in order of occurrence. Timestamps are by the service's clock. */
export type FeedMessage =
  /** The service sent CONNECTED; subscriptions follow. */
  | { readonly kind: "connected"; readonly at: Micros }
  /** Ticks of this subscription arrive from now on. Repeated when an `unconfirmed` subscription recovers. */
  | { readonly kind: "subscribed"; readonly subscription: Subscription; readonly at: Micros }
  /** The service rejects this subscription: poll REST, or wait for a scope. The feed retries hourly. */
  | {
      readonly kind: "parked";
      readonly subscription: Subscription;
      readonly code: string;
      readonly message: string;
    }
  /** Not confirmed, or its ticks stopped although REST has newer ones: poll REST meanwhile. */
  | {
      readonly kind: "unconfirmed";
      readonly subscription: Subscription;
      readonly reason: "no answer" | "refused" | "silent";
      /**
       * No tick is missing before: the last tick arrived at this time, or REST had no newer one. Undefined if
       * neither is known.
       */
      readonly missingSince?: Micros | undefined;
    }
  /** Tick messages, verbatim: the ingest thread parses them. */
  | { readonly kind: "update"; readonly texts: readonly string[] }
  /** The queue dropped ticks: REST has to fetch them. */
  | { readonly kind: "gap"; readonly from: Micros; readonly to: Micros; readonly dropped: number }
  /** A connection with a fresh token took over; no tick is missing. */
  | { readonly kind: "swapped"; readonly at: Micros }
  /** `since`: when the last message arrived. */
  | { readonly kind: "disconnected"; readonly reason: string; readonly since: Micros }
  /** An attempt to connect failed. */
  | { readonly kind: "retrying"; readonly reason: string; readonly attempt: number; readonly inMs: number };

/** Equal subscriptions have equal keys. Concatenates strings, for speed: every tick needs several keys. */
export function subscriptionKey(subscription: Subscription): string {
  if (subscription.source === "index") {
    const { indexId, indexType } = subscription;
    return indexId === undefined ? `type ${indexType}` : `index ${indexId}`;
  }
  const { exchangeId, marketId } = subscription;
  if (exchangeId === undefined) return `market ${marketId}`;
  // The length prevents two different pairs of ids from giving the same key.
  return marketId === undefined
    ? `exchange ${exchangeId}`
    : `both ${exchangeId.length} ${exchangeId} ${marketId}`;
}

/** The service identifies a subscription by these fields, also when it unsubscribes. */
export function subscriptionMessage(
  action: "SUBSCRIBE" | "UNSUBSCRIBE",
  subscription: Subscription,
  requestId?: number,
): string {
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    // The confirmation does not repeat the request's id.
    return JSON.stringify({ event: `${action}_EXCHANGE_TICKER`, exchangeId, marketId });
  }
  const { indexId, indexType } = subscription;
  // The service expects an index id without its type.
  const fields = indexId === undefined ? { indexType } : { indexId };
  return JSON.stringify({ event: `${action}_INDEX_TICKER`, ...fields, requestId });
}
