import type { Quirks } from "../market/quirks.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import type { JsonWriter } from "./json-writer.ts";
import { QueryParams } from "./query-params.ts";

/** Answers /asset, /market and /exchange, as lists with their filters and one by one. */
export class Lookups {
  readonly #universe: Universe;
  readonly #quirks: Quirks;
  readonly #wire: JsonWriter;

  constructor(universe: Universe, quirks: Quirks, wire: JsonWriter) {
    this.#universe = universe;
    this.#quirks = quirks;
    this.#wire = wire;
  }

  assets(query: URLSearchParams): string {
    const values = new QueryParams("asset", query, this.#quirks.ids);
    const type = values.oneOf("type", ["FIAT", "CRYPTO"]);
    const status = values.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const symbol = values.text("symbol");
    values.throwIfInvalid();
    const found = this.#universe.assets.filter(
      (asset) => matches(type, asset.type) && matches(status, asset.status) && matches(symbol, asset.symbol),
    );
    return this.#formatContent(found.map(toAssetRecord));
  }

  asset(id: string): string {
    return this.#wire.formatRecord(toAssetRecord(findById(this.#universe.assets, id, "asset")));
  }

  markets(query: URLSearchParams): string {
    const values = new QueryParams("market", query, this.#quirks.ids);
    const base = values.id("baseAssetId");
    const quote = values.id("quoteAssetId");
    values.throwIfInvalid();
    const found = this.#universe.markets.filter(
      (market) => matches(base, market.base.id) && matches(quote, market.quote.id),
    );
    return this.#formatContent(found.map(toMarketRecord));
  }

  market(id: string): string {
    return this.#wire.formatRecord(toMarketRecord(findById(this.#universe.markets, id, "market")));
  }

  exchanges(query: URLSearchParams): string {
    const values = new QueryParams("exchange", query, this.#quirks.ids);
    const status = values.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const name = values.text("name");
    values.throwIfInvalid();
    const found = this.#universe.exchanges.filter(
      (exchange) => matches(status, exchange.status) && matches(name, exchange.name),
    );
    return this.#formatContent(found.map(toExchangeRecord));
  }

  exchange(id: string): string {
    return this.#wire.formatRecord(toExchangeRecord(findById(this.#universe.exchanges, id, "exchange")));
  }

  #formatContent(records: readonly object[]): string {
    return `{"content":${this.#wire.formatList(records)}}`;
  }
}

export function toAssetRecord({
  id,
  name,
  symbol,
  status,
  type,
  url,
  createContractAddress: contractAddress,
}: SimulatedAsset) {
  return { id, name, symbol, status, type, url, ...(contractAddress ? { contractAddress } : {}) };
}

export function toMarketRecord({ id, base, quote }: SimulatedMarket) {
  return { id, baseAssetId: base.id, quoteAssetId: quote.id };
}

export function toExchangeRecord({ id, name, url, status, markets, symbols }: SimulatedExchange) {
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
