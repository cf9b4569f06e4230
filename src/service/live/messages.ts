import type { Micros } from "../../model/time.ts";

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
  /** An ERROR that belongs to no subscription. */
  | { readonly kind: "error"; readonly code: string; readonly message: string; readonly count: number }
  /** A message that this version does not know, with the first of its kind as a sample. */
  | {
      readonly kind: "unknown";
      readonly event: string;
      readonly reason: string;
      readonly sample: string;
      readonly count: number;
    }
  /** The queue dropped ticks: REST has to fetch them. */
  | {
      readonly kind: "gap";
      readonly from: Micros;
      readonly to: Micros;
      readonly reason: "overflow";
      readonly dropped: number;
    }
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

export function subscribeMessage(subscription: Subscription, requestId: number): string {
  // The confirmation of an exchange subscription does not repeat its request's id.
  const id = subscription.source === "index" ? { requestId } : {};
  return JSON.stringify({ ...describeSubscription("SUBSCRIBE", subscription), ...id });
}

/** The service identifies the subscription by the fields of its subscribe message. */
export function unsubscribeMessage(subscription: Subscription): string {
  return JSON.stringify(describeSubscription("UNSUBSCRIBE", subscription));
}

function describeSubscription(action: "SUBSCRIBE" | "UNSUBSCRIBE", subscription: Subscription) {
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    return { event: `${action}_EXCHANGE_TICKER`, exchangeId, marketId };
  }
  const { indexId, indexType } = subscription;
  const event = `${action}_INDEX_TICKER`;
  // The service expects an index id without its type.
  return indexId === undefined ? { event, indexType } : { event, indexId };
}

/** The keys of all subscriptions that may have caused a tick. */
export function subscriptionKeysForTick(tick: {
  readonly source: "index" | "exchange";
  readonly typeOrExchange: string | undefined;
  readonly indexOrMarket: string | undefined;
}): string[] {
  const { source, typeOrExchange, indexOrMarket } = tick;
  if (source === "index")
    return [
      subscriptionKey({ source, indexId: indexOrMarket }),
      subscriptionKey({ source, indexType: typeOrExchange }),
    ];
  return [
    subscriptionKey({ source, exchangeId: typeOrExchange, marketId: indexOrMarket }),
    subscriptionKey({ source, exchangeId: typeOrExchange }),
    subscriptionKey({ source, marketId: indexOrMarket }),
  ];
}
