import type { Quirks } from "../market/quirks.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";
import { Refusal } from "./errors.ts";
import type { WireWriter } from "./json-writer.ts";
import { QueryValues } from "./query-params.ts";

/** Answers /asset, /market and /exchange, as lists with their filters and one by one. */
export class Lookups {
  readonly #universe: Universe;
  readonly #quirks: Quirks;
  readonly #wire: WireWriter;

  constructor(universe: Universe, quirks: Quirks, wire: WireWriter) {
    this.#universe = universe;
    this.#quirks = quirks;
    this.#wire = wire;
  }

  assets(query: URLSearchParams): string {
    const values = new QueryValues("asset", query, this.#quirks.ids);
    const type = values.oneOf("type", ["FIAT", "CRYPTO"]);
    const status = values.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const symbol = values.text("symbol");
    values.refuseComplaints();
    const found = this.#universe.assets.filter(
      (asset) => matches(type, asset.type) && matches(status, asset.status) && matches(symbol, asset.symbol),
    );
    return this.#list(found.map(assetRecord));
  }

  asset(id: string): string {
    return this.#wire.record(assetRecord(one(this.#universe.assets, id, "asset")));
  }

  markets(query: URLSearchParams): string {
    const values = new QueryValues("market", query, this.#quirks.ids);
    const base = values.id("baseAssetId");
    const quote = values.id("quoteAssetId");
    values.refuseComplaints();
    const found = this.#universe.markets.filter(
      (market) => matches(base, market.base.id) && matches(quote, market.quote.id),
    );
    return this.#list(found.map(marketRecord));
  }

  market(id: string): string {
    return this.#wire.record(marketRecord(one(this.#universe.markets, id, "market")));
  }

  exchanges(query: URLSearchParams): string {
    const values = new QueryValues("exchange", query, this.#quirks.ids);
    const status = values.oneOf("status", ["ACTIVE", "INACTIVE"]);
    const name = values.text("name");
    values.refuseComplaints();
    const found = this.#universe.exchanges.filter(
      (exchange) => matches(status, exchange.status) && matches(name, exchange.name),
    );
    return this.#list(found.map(exchangeRecord));
  }

  exchange(id: string): string {
    return this.#wire.record(exchangeRecord(one(this.#universe.exchanges, id, "exchange")));
  }

  #list(records: readonly object[]): string {
    return `{"content":${this.#wire.list(records)}}`;
  }
}

export function assetRecord({ id, name, symbol, status, type, url, contractAddress }: SimulatedAsset) {
  return { id, name, symbol, status, type, url, ...(contractAddress ? { contractAddress } : {}) };
}

export function marketRecord({ id, base, quote }: SimulatedMarket) {
  return { id, baseAssetId: base.id, quoteAssetId: quote.id };
}

export function exchangeRecord({ id, name, url, status, markets, symbols }: SimulatedExchange) {
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

function matches(wanted: string | undefined, actual: string): boolean {
  return wanted === undefined || wanted === actual;
}

function one<T extends { readonly id: string }>(entities: readonly T[], id: string, what: string): T {
  const found = entities.find((entity) => entity.id === id);
  if (!found) throw new Refusal(404, `No ${what} ${id}`);
  return found;
}
