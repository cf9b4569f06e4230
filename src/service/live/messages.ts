import type { Micros } from "../../model/time.ts";

/** All ticks of one index, or of all indices of one type. */
export interface IndexSubscription {
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

/** What the feed tells its reader, in the order in which it happened. Moments are by the service's clock. */
export type FeedMessage =
  /** The service greeted us; subscriptions follow. */
  | { readonly kind: "connected"; readonly at: Micros }
  /** Ticks of this subscription flow, as far as anybody can tell. Also said again when it had been in doubt. */
  | { readonly kind: "subscribed"; readonly subscription: Subscription; readonly at: Micros }
  /** The service will not serve this subscription for now: poll REST, or wait for a scope. It is asked again hourly. */
  | {
      readonly kind: "parked";
      readonly subscription: Subscription;
      readonly code: string;
      readonly message: string;
    }
  /** Whether ticks will come is not known, or they have stopped while the market has not: poll REST meanwhile. */
  | {
      readonly kind: "unconfirmed";
      readonly subscription: Subscription;
      readonly reason: "no answer" | "refused" | "silent";
      /** Up to then no tick is missing: the last one came, or REST knew of no newer one. Undefined where neither is known. */
      readonly since?: Micros | undefined;
    }
  /** Messages with ticks, verbatim. Reading them is the ingest thread's work. */
  | { readonly kind: "update"; readonly texts: readonly string[] }
  /** An ERROR that no subscription can be blamed for. */
  | { readonly kind: "error"; readonly code: string; readonly message: string; readonly count: number }
  /** A message that this version cannot read, with the first of its kind as a sample. */
  | {
      readonly kind: "unknown";
      readonly event: string;
      readonly reason: string;
      readonly sample: string;
      readonly count: number;
    }
  /** Ticks that could not be held: what they said must be fetched. */
  | {
      readonly kind: "gap";
      readonly from: Micros;
      readonly to: Micros;
      readonly reason: "overflow";
      readonly dropped: number;
    }
  /** Another connection with a younger token has taken over; nothing was missed. */
  | { readonly kind: "swapped"; readonly at: Micros }
  /** Nothing has been heard since `since`. */
  | { readonly kind: "disconnected"; readonly reason: string; readonly since: Micros }
  /** An attempt to connect failed. */
  | { readonly kind: "retrying"; readonly reason: string; readonly attempt: number; readonly inMs: number };

/** Equal texts mean the same subscription. Made for every tick, so it is put together by hand. */
export function subscriptionKey(subscription: Subscription): string {
  if (subscription.source === "index") {
    const { indexId, indexType } = subscription;
    return indexId === undefined ? `type ${indexType}` : `index ${indexId}`;
  }
  const { exchangeId, marketId } = subscription;
  if (exchangeId === undefined) return `market ${marketId}`;
  // With its length, no two pairs of ids, whatever is in them, give the same text.
  return marketId === undefined
    ? `exchange ${exchangeId}`
    : `both ${exchangeId.length} ${exchangeId} ${marketId}`;
}

/** The subscribe message. An index is named by its id alone where that is known, as the service wants it. */
export function subscribeMessage(subscription: Subscription, requestId: number): string {
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    return JSON.stringify({ event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId, marketId });
  }
  const { indexId, indexType } = subscription;
  const which = indexId === undefined ? { indexType } : { indexId };
  return JSON.stringify({ event: "SUBSCRIBE_INDEX_TICKER", ...which, requestId });
}

/** The same body as the subscribe, which is how the service knows what is meant. */
export function unsubscribeMessage(subscription: Subscription): string {
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    return JSON.stringify({ event: "UNSUBSCRIBE_EXCHANGE_TICKER", exchangeId, marketId });
  }
  const { indexId, indexType } = subscription;
  const which = indexId === undefined ? { indexType } : { indexId };
  return JSON.stringify({ event: "UNSUBSCRIBE_INDEX_TICKER", ...which });
}

/** The keys of all subscriptions that a tick may have come for. */
export function keysOfTick(tick: {
  readonly source: "index" | "exchange";
  readonly first: string | undefined;
  readonly second: string | undefined;
}): string[] {
  const { source, first, second } = tick;
  if (source === "index")
    return [subscriptionKey({ source, indexId: second }), subscriptionKey({ source, indexType: first })];
  return [
    subscriptionKey({ source, exchangeId: first, marketId: second }),
    subscriptionKey({ source, exchangeId: first }),
    subscriptionKey({ source, marketId: second }),
  ];
}
