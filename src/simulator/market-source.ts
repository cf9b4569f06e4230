import type { Choices } from "../api-server/choices.ts";
import type {
  ContractFilter,
  ContractsFilter,
  EntityKind,
  SeriesFilter,
  Source,
  SourceState,
} from "../api-server/source.ts";
import type { DerivativeType } from "../model/streams.ts";
import type { Clock } from "../runtime/clock.ts";
import { listContracts } from "./market/contracts.ts";
import type { IndexSeries } from "./market/indexes.ts";
import type { SimulatedAsset, SimulatedExchange, SimulatedMarket, Universe } from "./market/universe.ts";
import { followMarket } from "./market-feed.ts";
import { createDerivativeTick } from "./records/derivatives.ts";
import type { History } from "./records/history.ts";
import { rankMarketCaps } from "./records/market-caps.ts";
import type { World } from "./world.ts";

/** The simulated market as the API serves it: every answer is a function of the seed and the time. */
export function createMarketSource(world: World, clock: Clock, choices: Choices): Source {
  return {
    choices,
    read: (nowMs, read) => read(readMarket(world, nowMs)),
    follow: (audience) => followMarket(world, clock, audience),
  };
}

function readMarket(world: World, nowMs: number): SourceState {
  const { universe, table, calendar, ids, exchangeTickers } = world;
  const tick = calendar.newestTick(nowMs);
  const historyOf = (stream: "index_ticks" | "ohlcv"): History =>
    stream === "ohlcv" ? world.bars : world.ticks;
  const findSeries = ({ indexType, indexId }: SeriesFilter): readonly IndexSeries[] => {
    if (indexId === undefined) return indexType === undefined ? table.all : table.byType[indexType];
    const found = table.byId.get(indexId);
    return found && (indexType ?? found.type) === found.type ? [found] : [];
  };
  const contractsOf = (
    type: DerivativeType,
    include: ContractFilter,
    { exchangeId, marketId, contractId }: ContractsFilter,
  ) =>
    universe.exchanges
      .filter(({ id }) => (exchangeId ?? id) === id)
      .flatMap((exchange) => listContracts(world, type, exchange, include, nowMs))
      .filter(
        ({ record }) =>
          (marketId ?? record.marketId) === record.marketId && (contractId ?? record.id) === record.id,
      );
  return {
    now: nowMs * 1000,
    entities: (kind, filter) =>
      listEntities(universe, kind, filter.id)
        .filter((entity) =>
          Object.entries(filter).every(([name, value]) => value === undefined || entity[name] === value),
        )
        .map((entity) => JSON.stringify(entity)),
    findMarkets: (name) =>
      universe.markets
        .filter(({ base, quote }) => `${base.symbol}_${quote.symbol}` === name)
        .map(({ id }) => id),
    findSeries: (stream, filter) => findSeries(filter).map((series) => historyOf(stream).open(series, nowMs)),
    findListing: (tickerId) => ids.decode("exchange tick", tickerId)?.key,
    exchangeTickers: ({ exchangeId, marketIds, firstKey, limit }) =>
      exchangeTickers(
        tick,
        ({ ordinal, exchange, market }) =>
          ordinal >= firstKey &&
          (exchangeId ?? exchange.id) === exchange.id &&
          marketIds.every((id) => id === market.id),
      )
        .slice(0, limit)
        .map((record) => ({ id: record.id, text: JSON.stringify(record) })),
    marketCaps: (assetId, withChanges) =>
      rankMarketCaps(world, nowMs, withChanges)
        .filter((record) => (assetId ?? record.assetId) === record.assetId)
        .map((record) => JSON.stringify(record)),
    contracts: (type, include, filter) =>
      contractsOf(type, include, filter).map(({ record }) => JSON.stringify(record)),
    derivativeTickers: (type, filter) =>
      contractsOf(type, "ACTIVE", filter).map((contract) =>
        JSON.stringify(createDerivativeTick(world, contract, tick)),
      ),
  };
}

function listEntities(
  { assets, markets, exchanges }: Universe,
  kind: EntityKind,
  only: string | undefined,
): Readonly<Record<string, unknown>>[] {
  const isListed = ({ id }: { readonly id: string }) => only === undefined || id === only;
  if (kind === "asset") return assets.filter(isListed).map(toAssetRecord);
  if (kind === "market") return markets.filter(isListed).map(toMarketRecord);
  return exchanges.filter(isListed).map(toExchangeRecord);
}

function toAssetRecord({ id, name, symbol, status, type, url, contractAddress }: SimulatedAsset) {
  return { id, name, symbol, status, type, url, ...(contractAddress ? { contractAddress } : {}) };
}

function toMarketRecord({ id, base, quote }: SimulatedMarket) {
  return { id, baseAssetId: base.id, quoteAssetId: quote.id };
}

function toExchangeRecord({ id, name, url, status, markets, symbols }: SimulatedExchange) {
  return {
    ...{ id, name, url, status },
    markets: markets.map((market) => ({
      marketId: market.id,
      marketStatus: market.base.status,
      qualified: market.base.type === "CRYPTO",
    })),
    symbols,
  };
}
