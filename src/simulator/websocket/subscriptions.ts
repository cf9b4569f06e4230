import {
  type IndexSeries,
  type IndexTable,
  type SimulatedIndexType,
  simulatedIndexTypes,
} from "../market/indexes.ts";
import type { SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";

/** One source of live ticks: an index, or a market on an exchange. */
export type LiveSeries = { readonly key: string } & (
  | { readonly kind: "index"; readonly index: IndexSeries }
  | { readonly kind: "exchange"; readonly exchange: SimulatedExchange; readonly market: SimulatedMarket }
);

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
  readonly #exchanges: ReadonlyMap<string, SimulatedExchange>;
  readonly #markets: ReadonlyMap<string, SimulatedMarket>;
  readonly #marketsByName = new Map<string, SimulatedMarket[]>();
  readonly #exchangesByMarket = new Map<SimulatedMarket, SimulatedExchange[]>();

  constructor({ markets, exchanges }: Universe, indexes: IndexTable) {
    this.#indexes = indexes;
    this.#exchanges = new Map(exchanges.map((exchange) => [exchange.id, exchange]));
    this.#markets = new Map(markets.map((market) => [market.id, market]));
    for (const market of markets)
      push(this.#marketsByName, `${market.base.symbol}_${market.quote.symbol}`, market);
    for (const exchange of exchanges)
      for (const market of exchange.markets) push(this.#exchangesByMarket, market, exchange);
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

    const exchange = this.#exchanges.get(String(exchangeId));
    if (exchangeId !== undefined && !exchange) return { code: "404", message: "no such exchange" };
    const markets = this.#findMarkets(marketId, marketName);
    if (markets?.length === 0) return { code: "404", message: "no such market" };
    const series = markets
      ? markets.flatMap((market) =>
          (this.#exchangesByMarket.get(market) ?? [])
            .filter((listing) => exchange === undefined || listing === exchange)
            .map((listing) => createExchangeSeries(listing, market)),
        )
      : (exchange?.markets ?? []).map((market) =>
          createExchangeSeries(exchange as SimulatedExchange, market),
        );
    if (exchange && markets && series.length === 0)
      return { code: "404", message: "the exchange does not list this market" };
    return {
      key: `exchange ${String(exchangeId)} ${String(marketId)} ${String(marketName)}`,
      series,
      scope: "read:exchange-ticker",
      confirmation: {
        ...(exchange ? { exchangeId: exchange.id } : {}),
        ...(markets ? { marketId: markets[0]?.id } : {}),
      },
    };
  }

  /** Undefined: the message names no market, so all match. */
  #findMarkets(id: unknown, name: unknown): SimulatedMarket[] | undefined {
    const named = this.#marketsByName.get(String(name)) ?? [];
    if (id === undefined) return name === undefined ? undefined : named;
    const market = this.#markets.get(String(id));
    return market && (name === undefined || named.includes(market)) ? [market] : [];
  }
}

function createExchangeSeries(exchange: SimulatedExchange, market: SimulatedMarket): LiveSeries {
  return { key: `EX ${exchange.ordinal} ${market.ordinal}`, kind: "exchange", exchange, market };
}

function push<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

const badSubscription = (message: string): SubscriptionError => ({ code: "400", message });
