import {
  type IndexSeries,
  type IndexTable,
  type SimulatedIndexType,
  simulatedIndexTypes,
} from "../market/indexes.ts";
import type { SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";

interface ExchangeListing {
  readonly key: string;
  readonly kind: "exchange";
  readonly exchange: SimulatedExchange;
  readonly market: SimulatedMarket;
}

/** One source of live ticks: an index, or a market on an exchange. */
export type LiveSeries =
  | { readonly key: string; readonly kind: "index"; readonly index: IndexSeries }
  | ExchangeListing;

/** A parsed message that starts or stops a subscription. */
export interface SubscriptionRequest {
  /** The same for messages with the same body, in any order of properties. Excludes requestId. */
  key: string;
  series: readonly LiveSeries[];
  scope: string;
  /** The properties of SUBSCRIBED_*, without event and timestamp. */
  confirmation: Record<string, unknown>;
}

interface SubscriptionError {
  code: "400" | "401" | "403" | "404";
  message: string;
}

type Message = Readonly<Record<string, unknown>>;

/** Resolves the ids and names of subscription messages. */
export class SubscriptionDirectory {
  readonly #indexes: IndexTable;
  readonly #universe: Universe;
  /** All markets on all exchanges, by market. */
  readonly #listings: readonly ExchangeListing[];

  constructor(universe: Universe, indexes: IndexTable) {
    this.#indexes = indexes;
    this.#universe = universe;
    const listings = universe.exchanges.flatMap((exchange) =>
      exchange.markets.map((market): ExchangeListing => {
        return { key: `EX ${exchange.ordinal} ${market.ordinal}`, kind: "exchange", exchange, market };
      }),
    );
    const byMarket = Map.groupBy(listings, ({ market }) => market);
    this.#listings = universe.markets.flatMap((market) => byMarket.get(market) ?? []);
  }

  resolveIndexes(message: Message): SubscriptionRequest | SubscriptionError {
    const { indexId, indexType, requestId } = message;
    if (requestId !== undefined && !Number.isInteger(requestId))
      return badSubscription("requestId must be an integer");
    const type = simulatedIndexTypes.find((known) => known === indexType);
    if (indexType !== undefined && type === undefined)
      return badSubscription("indexType must be LX, MWA or GWA");
    if (indexId !== undefined && typeof indexId !== "string")
      return badSubscription("indexId must be a string");
    const series = this.#findIndexes(indexId, type);
    if (series === undefined) return badSubscription("indexId or indexType is required");
    const found = series[0];
    if (found === undefined) return { code: "404", message: "no such index" };
    const echo = requestId === undefined ? {} : { requestId };
    return {
      key: `index ${String(indexId)} ${String(indexType)}`,
      series: series.map((index) => ({ key: `${index.type} ${index.ordinal}`, kind: "index", index })),
      scope: found.type === "LX" ? "read:LX" : "read:index-ticker",
      confirmation: { indexType: found.type, ...echo },
    };
  }

  #findIndexes(
    id: string | undefined,
    type: SimulatedIndexType | undefined,
  ): readonly IndexSeries[] | undefined {
    if (id === undefined) return type && this.#indexes.ofType(type);
    const found = this.#indexes.byId(id);
    return found && (type === undefined || found.type === type) ? [found] : [];
  }

  resolveExchanges(message: Message): SubscriptionRequest | SubscriptionError {
    const { exchangeId, marketId, marketName } = message;
    if (exchangeId === undefined && marketId === undefined && marketName === undefined)
      return badSubscription("exchangeId, marketId or marketName is required");
    for (const value of [exchangeId, marketId, marketName])
      if (value !== undefined && typeof value !== "string")
        return badSubscription("ids and names must be strings");

    const isNamed = marketId !== undefined || marketName !== undefined;
    const exchange = this.#universe.exchanges.find(({ id }) => id === exchangeId);
    if (exchangeId !== undefined && !exchange) return { code: "404", message: "no such exchange" };
    const markets = this.#universe.markets.filter(
      ({ id, base, quote }) =>
        (marketId === undefined || id === marketId) &&
        (marketName === undefined || `${base.symbol}_${quote.symbol}` === marketName),
    );
    if (isNamed && markets.length === 0) return { code: "404", message: "no such market" };
    const selected = new Set(markets);
    const series = this.#listings.filter(
      (listing) => selected.has(listing.market) && (!exchange || listing.exchange === exchange),
    );
    if (exchange && isNamed && series.length === 0)
      return { code: "404", message: "the exchange does not list this market" };
    return {
      key: `exchange ${String(exchangeId)} ${String(marketId)} ${String(marketName)}`,
      series,
      scope: "read:exchange-ticker",
      confirmation: {
        ...(exchange ? { exchangeId: exchange.id } : {}),
        ...(isNamed ? { marketId: markets[0]?.id } : {}),
      },
    };
  }
}

const badSubscription = (message: string): SubscriptionError => ({ code: "400", message });
