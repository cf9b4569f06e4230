import type { Market } from "../market/market.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import type { JsonWriter } from "./json-writer.ts";
import { QueryParams } from "./query-params.ts";

/** Serves /asset, /market and /exchange: filtered lists and single entities. */
export class Lookups {
  readonly #market: Market;
  readonly #writer: JsonWriter;

  constructor(market: Market, writer: JsonWriter) {
    this.#market = market;
    this.#writer = writer;
  }

  assets(query: URLSearchParams): string {
    const params = new QueryParams("asset", query, this.#market.quirks);
    const type = params.oneOf("type", ["FIAT", "CRYPTO"]);
    const status = params.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const symbol = params.text("symbol");
    params.throwIfInvalid();
    const found = this.#market.universe.assets.filter(
      (asset) => matches(type, asset.type) && matches(status, asset.status) && matches(symbol, asset.symbol),
    );
    return this.#formatContent(found.map(toAssetRecord));
  }

  asset(id: string): string {
    return this.#writer.formatRecord(toAssetRecord(findById(this.#market.universe.assets, id, "asset")));
  }

  markets(query: URLSearchParams): string {
    const params = new QueryParams("market", query, this.#market.quirks);
    const base = params.id("baseAssetId");
    const quote = params.id("quoteAssetId");
    params.throwIfInvalid();
    const found = this.#market.universe.markets.filter(
      (market) => matches(base, market.base.id) && matches(quote, market.quote.id),
    );
    return this.#formatContent(found.map(toMarketRecord));
  }

  market(id: string): string {
    return this.#writer.formatRecord(toMarketRecord(findById(this.#market.universe.markets, id, "market")));
  }

  exchanges(query: URLSearchParams): string {
    const params = new QueryParams("exchange", query, this.#market.quirks);
    const status = params.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const name = params.text("name");
    params.throwIfInvalid();
    const found = this.#market.universe.exchanges.filter(
      (exchange) => matches(status, exchange.status) && matches(name, exchange.name),
    );
    return this.#formatContent(found.map(toExchangeRecord));
  }

  exchange(id: string): string {
    return this.#writer.formatRecord(
      toExchangeRecord(findById(this.#market.universe.exchanges, id, "exchange")),
    );
  }

  #formatContent(records: readonly object[]): string {
    return `{"content":${this.#writer.formatList(records)}}`;
  }
}

function toAssetRecord({ id, name, symbol, status, type, url, contractAddress }: SimulatedAsset) {
  return { id, name, symbol, status, type, url, ...(contractAddress ? { contractAddress } : {}) };
}

function toMarketRecord({ id, base, quote }: SimulatedMarket) {
  return { id, baseAssetId: base.id, quoteAssetId: quote.id };
}

function toExchangeRecord({ id, name, url, status, markets, symbols }: SimulatedExchange) {
  return {
    id,
    name,
    url,
    status,
    markets: markets.map((market) => ({
      marketId: market.id,
      marketStatus: market.base.status,
      qualified: market.base.type === "CRYPTO",
    })),
    symbols,
  };
}

function matches(expected: string | undefined, actual: string): boolean {
  return expected === undefined || expected === actual;
}

function findById<T extends { readonly id: string }>(entities: readonly T[], id: string, what: string): T {
  const found = entities.find((entity) => entity.id === id);
  if (!found) throw new HttpError(404, `No ${what} ${id}`);
  return found;
}
