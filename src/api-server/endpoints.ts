import { derivativeTypes } from "../model/streams.ts";
import { ApiError } from "./api-error.ts";
import { respondHistory } from "./history.ts";
import type { ApiResponse } from "./interceptor.ts";
import { type QueryParams, readParams } from "./query-params.ts";
import {
  type EndpointRequest,
  formatPage,
  listResponse,
  nextIdOf,
  okResponse,
  recordResponse,
} from "./responses.ts";
import { type EntityKind, entityKinds, type SourceState } from "./source.ts";

/** Answers a request. `path`: below the version, as received. Throws an ApiError. */
export function respondToPath(path: string, request: EndpointRequest): ApiResponse {
  const [resource = "", ...rest] = path.split("/").slice(1).map(decodeSegment);
  const require = (scope: string) => {
    if (!request.scopes.has(scope)) throw new ApiError(403, `The scope ${scope} is missing`);
  };
  const [first = "", second = "", third] = rest;
  const kind = entityKinds.find((known) => known === resource);
  if (kind && rest.length === 1)
    return recordResponse(request.state.entities(kind, { id: first }), `No ${kind} ${first}`);
  if (kind && rest.length === 0) return respondEntities(kind, request);
  if (resource === "derivatives" && second !== "") {
    require("read:derivatives");
    if (first === "contract" && rest.length === 3) return respondContract(second, third ?? "", request);
    if (rest.length === 2 && (first === "contract" || first === "ticker"))
      return respondDerivatives(first, second, request);
  }
  if (rest.length === 0)
    switch (resource) {
      case "index-ticker":
        return respondHistory("index_ticks", request);
      case "ohlcv":
        return respondHistory("ohlcv", request);
      case "exchange-ticker":
        require("read:exchange-ticker");
        return respondExchangeTickers(request);
      case "market-cap":
        require("read:market-cap");
        return respondMarketCaps(request);
    }
  throw new ApiError(404, `No path ${path}`);
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ApiError(400, "The path is not percent-encoded UTF-8");
  }
}

/** Throws 404 if there is no such entity. */
export function assertKnown(state: SourceState, kind: EntityKind, id: string | undefined): void {
  if (id !== undefined && state.entities(kind, { id }).length === 0)
    throw new ApiError(404, `No ${kind} ${id}`);
}

/** By kind: the parameters that filter the list. Each has the name of the property that it selects. */
const entityFilters = {
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

function respondEntities(kind: EntityKind, request: EndpointRequest): ApiResponse {
  const params = readParams(kind, request);
  const filter = entityFilters[kind](params);
  params.throwIfInvalid();
  return listResponse(request.state.entities(kind, filter));
}

function respondExchangeTickers(request: EndpointRequest): ApiResponse {
  const { state, choices } = request;
  const params = readParams("exchange-ticker", request);
  const exchangeId = params.id("exchangeId");
  const marketId = params.id("marketId");
  const startAfter = params.id("startAfter");
  const base = params.text("baseSymbol");
  const quote = params.text("quoteSymbol");
  if (base !== undefined && quote === undefined)
    params.addError("quoteSymbol", "is required with baseSymbol");
  if (quote !== undefined && base === undefined)
    params.addError("baseSymbol", "is required with quoteSymbol");
  params.throwIfInvalid();
  assertKnown(state, "exchange", exchangeId);
  assertKnown(state, "market", marketId);
  const named = base === undefined ? [] : state.findMarkets(`${base}_${quote}`);
  if (base !== undefined && named.length === 0) throw new ApiError(404, `No market ${base}/${quote}`);
  if (named.length > 1)
    throw new ApiError(400, `Duplicate symbols: ${named.length} markets are ${base}/${quote}`);
  const position = startAfter === undefined ? -1 : state.findListing(startAfter);
  if (position === undefined) throw new ApiError(404, `No record ${startAfter}`);
  const limit = choices.exchangeTickerPage || Number.MAX_SAFE_INTEGER;
  const found = state.exchangeTickers({
    exchangeId,
    marketIds: [...named, ...(marketId === undefined ? [] : [marketId])],
    firstKey: position + (choices.cursor === "exclusive" ? 1 : 0),
    limit: limit + 1,
  });
  const page = found.slice(0, limit);
  const nextId = nextIdOf(choices, found.length > limit, page.at(-1)?.id);
  const texts = page.map(({ text }) => text);
  return okResponse(formatPage(texts, nextId));
}

function respondMarketCaps(request: EndpointRequest): ApiResponse {
  const { state } = request;
  const params = readParams("market-cap", request);
  const assetId = params.id("assetId");
  const withChanges = params.flag("percentChange");
  params.throwIfInvalid();
  assertKnown(state, "asset", assetId);
  return listResponse(state.marketCaps(assetId, withChanges));
}

function respondContract(typeText: string, id: string, request: EndpointRequest) {
  const params = readParams("derivatives", request);
  const type = params.check("derivativeType", typeText, derivativeTypes) ?? "futures";
  params.throwIfInvalid();
  return recordResponse(request.state.contracts(type, "ALL", { contractId: id }), `No contract ${id}`);
}

function respondDerivatives(
  what: "contract" | "ticker",
  typeText: string,
  request: EndpointRequest,
): ApiResponse {
  const { state } = request;
  const params = readParams("derivatives", request);
  const type = params.check("derivativeType", typeText, derivativeTypes) ?? "futures";
  const exchangeId = params.requiredId("exchangeId");
  const marketId = params.id("marketId");
  const include = params.oneOf("include", ["ACTIVE", "ALL", "EXPIRED"]) ?? "ACTIVE";
  const contractId = params.id("contractId");
  params.throwIfInvalid();
  assertKnown(state, "exchange", exchangeId);
  assertKnown(state, "market", marketId);
  if (what === "contract") return listResponse(state.contracts(type, include, { exchangeId, marketId }));
  if (contractId !== undefined && state.contracts(type, "ALL", { contractId }).length === 0)
    throw new ApiError(404, `No contract ${contractId}`);
  return listResponse(state.derivativeTickers(type, { exchangeId, marketId, contractId }));
}
