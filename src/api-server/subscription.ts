import { indexTypes } from "../model/stream-columns.ts";
import { ApiError } from "./api-error.ts";
import { assertKnown } from "./endpoints.ts";
import type { LiveMessage } from "./interceptor.ts";
import type { SourceState } from "./source.ts";

/*
 * A topic is what a client subscribes to. A tick belongs to several topics; a client receives it once if it has any of them.
 */

const typeTopic = (indexType: string) => `type ${indexType}`;
const indexTopic = (indexId: string) => `index ${indexId}`;
const listingTopic = (exchangeId = "*", marketId = "*") => `listing ${exchangeId} ${marketId}`;

export function topicsOfIndex(indexType: string, indexId: string): readonly string[] {
  return [typeTopic(indexType), indexTopic(indexId)];
}

export function topicsOfListing(exchangeId: string, marketId: string): readonly string[] {
  return [
    listingTopic(exchangeId, marketId),
    listingTopic(exchangeId, undefined),
    listingTopic(undefined, marketId),
  ];
}

interface Subscription {
  /** The same for messages with the same body, in any order of properties. Excludes requestId. */
  readonly key: string;
  readonly topics: readonly string[];
  readonly scope: string;
  /** The properties of the confirmation. */
  readonly confirmation: Readonly<Record<string, unknown>>;
}

/** What SUBSCRIBE_* and UNSUBSCRIBE_* messages name, by what follows. They throw an ApiError. */
export const subscriptionReaders: Readonly<
  Record<string, (state: SourceState, message: LiveMessage) => Subscription>
> = { INDEX_TICKER: readIndexSubscription, EXCHANGE_TICKER: readListingSubscription };

function readText(message: LiveMessage, name: string): string | undefined {
  const value = message[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value === "") throw new ApiError(400, `${name} must be a text`);
  return value;
}

/** The `requestId` of a message, to be echoed. */
export function readRequestId({ requestId }: LiveMessage): { readonly requestId?: number } {
  if (requestId === undefined) return {};
  if (!Number.isSafeInteger(requestId)) throw new ApiError(400, "requestId must be an integer");
  return { requestId: requestId as number };
}

function readIndexSubscription(state: SourceState, message: LiveMessage): Subscription {
  const indexId = readText(message, "indexId");
  const typeText = readText(message, "indexType");
  const indexType = indexTypes.find((type) => type === typeText);
  const echo = readRequestId(message);
  if (typeText !== undefined && indexType === undefined)
    throw new ApiError(400, `indexType must be one of ${indexTypes.join(", ")}`);
  if (indexId === undefined && indexType === undefined)
    throw new ApiError(400, "indexId or indexType is required");
  const [found] = indexId === undefined ? [] : state.findSeries("index_ticks", { indexType, indexId });
  const type = indexId === undefined ? indexType : found?.indexType;
  if (type === undefined) throw new ApiError(404, `No index ${indexId}`);
  return {
    key: `index ${indexId} ${indexType}`,
    topics: [indexId === undefined ? typeTopic(type) : indexTopic(indexId)],
    scope: type === "LX" ? "read:LX" : "read:index-ticker",
    confirmation: { indexType: type, ...echo },
  };
}

function readListingSubscription(state: SourceState, message: LiveMessage): Subscription {
  const exchangeId = readText(message, "exchangeId");
  const marketId = readText(message, "marketId");
  const marketName = readText(message, "marketName");
  readRequestId(message);
  if (exchangeId === undefined && marketId === undefined && marketName === undefined)
    throw new ApiError(400, "exchangeId, marketId or marketName is required");
  assertKnown(state, "exchange", exchangeId);
  assertKnown(state, "market", marketId);
  const named = marketId === undefined && marketName !== undefined ? state.findMarkets(marketName) : [];
  const markets = marketId === undefined ? named : [marketId];
  if (marketName !== undefined && markets.length === 0) throw new ApiError(404, `No market ${marketName}`);
  return {
    key: `listing ${exchangeId} ${marketId} ${marketName}`,
    topics:
      markets.length === 0
        ? [listingTopic(exchangeId, undefined)]
        : markets.map((market) => listingTopic(exchangeId, market)),
    scope: "read:exchange-ticker",
    confirmation: { exchangeId, marketId: markets[0] },
  };
}
