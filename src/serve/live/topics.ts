import { indexTypes } from "../../model/stream-columns.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { assertKnown } from "../rest/lookups.ts";
import { requireSeries } from "../rest/series-directory.ts";
import { ServeError } from "../rest/serve-error.ts";

/*
 * A topic is what a client subscribes to. A tick belongs to several topics; a client receives it once if it has any of them.
 */

const typeTopic = (indexType: string) => `type ${indexType}`;
const indexTopic = (indexId: string) => `index ${indexId}`;
const listingTopic = (exchangeId: string | undefined, marketId: string | undefined) =>
  `listing ${exchangeId ?? "*"} ${marketId ?? "*"}`;

/** The topics that a tick of an index belongs to. */
export function topicsOfIndex(indexType: string, indexId: string): readonly string[] {
  return [typeTopic(indexType), indexTopic(indexId)];
}

/** The topics that a ticker of a market on an exchange belongs to. */
export function topicsOfListing(exchangeId: string, marketId: string): readonly string[] {
  return [
    listingTopic(exchangeId, marketId),
    listingTopic(exchangeId, undefined),
    listingTopic(undefined, marketId),
  ];
}

type Message = Readonly<Record<string, unknown>>;

interface SubscriptionAnswer {
  readonly topics: readonly string[];
  readonly scope: string;
  /** The properties of the confirmation. */
  readonly confirmation: Readonly<Record<string, unknown>>;
}

function readText(message: Message, name: string): string | undefined {
  const value = message[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value === "") throw new ServeError(400, `${name} must be a text`);
  return value;
}

/** The `requestId` of a message, to be echoed. */
export function readRequestId(message: Message): { readonly requestId?: number } {
  const { requestId } = message;
  if (requestId === undefined) return {};
  if (!Number.isSafeInteger(requestId)) throw new ServeError(400, "requestId must be an integer");
  return { requestId: requestId as number };
}

/** What a SUBSCRIBE_INDEX_TICKER or its UNSUBSCRIBE names. Throws a ServeError. */
export function readIndexTopics(connection: Connection, message: Message): SubscriptionAnswer {
  const indexId = readText(message, "indexId");
  const typeText = readText(message, "indexType");
  const indexType = indexTypes.find((type) => type === typeText);
  const echo = readRequestId(message);
  if (typeText !== undefined && indexType === undefined)
    throw new ServeError(400, `indexType must be one of ${indexTypes.join(", ")}`);
  if (indexId === undefined && indexType === undefined)
    throw new ServeError(400, "indexId or indexType is required");
  const type =
    indexId === undefined ? (indexType ?? "") : requireSeries(connection, { indexType, indexId }).indexType;
  return {
    topics: [indexId === undefined ? typeTopic(type) : indexTopic(indexId)],
    scope: type === "LX" ? "read:LX" : "read:index-ticker",
    confirmation: { indexType: type, ...echo },
  };
}

/** What a SUBSCRIBE_EXCHANGE_TICKER or its UNSUBSCRIBE names. Throws a ServeError. */
export function readListingTopics(connection: Connection, message: Message): SubscriptionAnswer {
  const exchangeId = readText(message, "exchangeId");
  const marketId = readText(message, "marketId");
  const marketName = readText(message, "marketName");
  readRequestId(message);
  if (exchangeId === undefined && marketId === undefined && marketName === undefined)
    throw new ServeError(400, "exchangeId, marketId or marketName is required");
  assertKnown(connection, "exchange", exchangeId);
  assertKnown(connection, "market", marketId);
  const named = marketId === undefined && marketName !== undefined ? findMarkets(connection, marketName) : [];
  const markets = marketId === undefined ? named : [marketId];
  return {
    topics:
      markets.length === 0
        ? [listingTopic(exchangeId, undefined)]
        : markets.map((market) => listingTopic(exchangeId, market)),
    scope: "read:exchange-ticker",
    confirmation: { exchangeId, marketId: markets[0] },
  };
}

/** The markets of a pair joined by an underscore; several if they share their symbols. */
function findMarkets(connection: Connection, name: string): readonly string[] {
  const sql = `SELECT m.id FROM market_rows m JOIN assets b ON b.id = m.base_asset_id JOIN assets q ON q.id = m.quote_asset_id
    WHERE b.symbol || '_' || q.symbol = ? AND m.delisted_at IS NULL`;
  const found = connection.values<string>(sql, [name]);
  if (found.length === 0) throw new ServeError(404, `No market ${name}`);
  return found;
}
