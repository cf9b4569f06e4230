import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import { formatPage } from "./http-types.ts";
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

/** Serves /asset, /market and /exchange: a filtered list, or a single entity. */
export function respondLookup(
  market: MarketModel,
  resource: LookupResource,
  id: string | undefined,
  query: URLSearchParams,
): string {
  const records = listRecords(market.universe, resource);
  if (id !== undefined) {
    const found = records.find((record) => record.id === id);
    if (!found) throw new HttpError(404, `No ${resource} ${id}`);
    return JSON.stringify(found);
  }
  const params = new QueryParams(resource, query, market.quirks);
  const wanted = Object.entries(filters[resource](params)).filter(([, value]) => value !== undefined);
  params.throwIfInvalid();
  return formatPage(records.filter((record) => wanted.every(([name, value]) => record[name] === value)));
}

function listRecords(
  { assets, markets, exchanges }: Universe,
  resource: LookupResource,
): Readonly<Record<string, unknown>>[] {
  if (resource === "asset") return assets.map(toAssetRecord);
  return resource === "market" ? markets.map(toMarketRecord) : exchanges.map(toExchangeRecord);
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
