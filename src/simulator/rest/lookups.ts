import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import { QueryParams } from "./query-params.ts";

/** By resource: the parameters that filter its list. Each has the name of the property that it selects. */
const filters = {
  asset: (params: QueryParams) => ({
    type: params.oneOf("type", ["FIAT", "CRYPTO"]),
    status: params.oneOf("status", ["ACTIVE", "INACTIVE"]),
    symbol: params.text("symbol"),
  }),
  market: (params: QueryParams) => ({
    baseAssetId: params.id("baseAssetId"),
    quoteAssetId: params.id("quoteAssetId"),
  }),
  exchange: (params: QueryParams) => ({
    status: params.oneOf("status", ["ACTIVE", "INACTIVE"]),
    name: params.text("name"),
  }),
};
type LookupResource = keyof typeof filters;

export function isLookupResource(resource: string): resource is LookupResource {
  return Object.hasOwn(filters, resource);
}

/** Serves /asset, /market and /exchange: filtered lists and single entities. */
export class Lookups {
  readonly #market: MarketModel;
  readonly #records: Readonly<Record<LookupResource, readonly Readonly<Record<string, unknown>>[]>>;

  constructor(market: MarketModel) {
    const { universe } = market;
    this.#market = market;
    this.#records = {
      asset: universe.assets.map(toAssetRecord),
      market: universe.markets.map(toMarketRecord),
      exchange: universe.exchanges.map(toExchangeRecord),
    };
  }

  respondList(resource: LookupResource, query: URLSearchParams): string {
    const params = new QueryParams(resource, query, this.#market.quirks);
    const wanted = Object.entries(filters[resource](params)).filter(([, value]) => value !== undefined);
    params.throwIfInvalid();
    const found = this.#records[resource].filter((record) =>
      wanted.every(([name, value]) => record[name] === value),
    );
    return this.#market.json.formatPage(found);
  }

  respondEntity(resource: LookupResource, id: string): string {
    const found = this.#records[resource].find((record) => record.id === id);
    if (!found) throw new HttpError(404, `No ${resource} ${id}`);
    return this.#market.json.formatRecord(found);
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
