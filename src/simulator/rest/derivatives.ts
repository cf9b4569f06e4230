import {
  type Contract,
  type ContractFilter,
  type Contracts,
  type SimulatedDerivativeType,
  simulatedDerivativeTypes,
} from "../market/contracts.ts";
import { formatDecimal } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedExchange } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import type { JsonWriter } from "./json-writer.ts";
import { QueryParams } from "./query-params.ts";

/** Serves /derivatives: contract lists, single contracts, and tickers. */
export class Derivatives {
  readonly #market: MarketModel;
  readonly #contracts: Contracts;
  readonly #tickers: DerivativeTickers;
  readonly #writer: JsonWriter;

  constructor(market: MarketModel, contracts: Contracts, tickers: DerivativeTickers, writer: JsonWriter) {
    this.#market = market;
    this.#contracts = contracts;
    this.#tickers = tickers;
    this.#writer = writer;
  }

  respondContracts(typeText: string, query: URLSearchParams, nowMs: number): string {
    const params = this.#queryParams(query);
    const type = parseDerivativeType(typeText);
    const exchangeId = params.requiredId("exchangeId");
    const marketId = params.id("marketId");
    const include = params.oneOf<ContractFilter>("include", ["ACTIVE", "ALL", "EXPIRED"]) ?? "ACTIVE";
    params.throwIfInvalid();
    const listed = this.#contracts.list(type, this.#findExchange(exchangeId), include, nowMs);
    return `{"content":${this.#writer.formatList(this.#filterByMarket(listed, marketId).map(({ record }) => record))}}`;
  }

  respondContract(typeText: string, id: string, nowMs: number): string {
    const type = parseDerivativeType(typeText);
    for (const exchange of this.#market.universe.exchanges) {
      const found = this.#contracts.list(type, exchange, "ALL", nowMs).find(({ record }) => record.id === id);
      if (found) return this.#writer.formatRecord(found.record);
    }
    throw new HttpError(404, `No contract ${id}`);
  }

  respondTickers(typeText: string, query: URLSearchParams, nowMs: number): string {
    const params = this.#queryParams(query);
    const type = parseDerivativeType(typeText);
    const exchangeId = params.requiredId("exchangeId");
    const marketId = params.id("marketId");
    const contractId = params.id("contractId");
    params.throwIfInvalid();
    const active = this.#contracts.list(type, this.#findExchange(exchangeId), "ACTIVE", nowMs);
    const chosen = this.#filterByMarket(active, marketId).filter(
      ({ record }) => contractId === undefined || record.id === contractId,
    );
    if (contractId !== undefined && chosen.length === 0)
      throw new HttpError(404, `No active contract ${contractId}`);
    const tick = this.#market.calendar.newestTick(nowMs);
    return `{"content":${this.#writer.formatList(chosen.map((contract) => this.#tickers.record(contract, tick)))}}`;
  }

  #filterByMarket(contracts: readonly Contract[], marketId: string | undefined): readonly Contract[] {
    if (marketId === undefined) return contracts;
    if (!this.#market.universe.markets.some(({ id }) => id === marketId))
      throw new HttpError(404, `No market ${marketId}`);
    return contracts.filter(({ record }) => record.marketId === marketId);
  }

  #findExchange(id: string): SimulatedExchange {
    const exchange = this.#market.universe.exchanges.find((candidate) => candidate.id === id);
    if (!exchange) throw new HttpError(404, `No exchange ${id}`);
    return exchange;
  }

  #queryParams(query: URLSearchParams): QueryParams {
    return new QueryParams("derivatives", query, this.#market.quirks);
  }
}

function parseDerivativeType(text: string): SimulatedDerivativeType {
  const type = simulatedDerivativeTypes.find((known) => known === text);
  if (type) return type;
  const message = `must be one of ${simulatedDerivativeTypes.join(", ")}`;
  throw new HttpError(400, "Validation error", [
    { object: "derivatives", field: "derivativeType", rejectedValue: text, message },
  ]);
}

export type DerivativeTickRecord = ReturnType<DerivativeTickers["record"]>;

const YEAR_MS = 31_557_600_000;
const FUNDING_INTERVAL_MS = 8 * 3_600_000;

/** Prices contracts near the index of their market. */
export class DerivativeTickers {
  readonly #market: MarketModel;

  constructor(market: MarketModel) {
    this.#market = market;
  }

  record(contract: Contract, tick: number) {
    const { seed, indexValues, calendar, ids, utc } = this.#market;
    const { series, ordinal, step, strike, expirationMs } = contract;
    const atMs = tick * calendar.tickMs;
    const index = Math.exp(indexValues.logPriceAt(series, tick));
    const years = expirationMs === undefined ? 0 : Math.max(0, expirationMs - atMs) / YEAR_MS;
    const noise = (hashFraction(seed, 91, ordinal, step, tick) - 0.5) * 0.0004;
    const forward = index * Math.exp(0.06 * years);
    const mark =
      strike === undefined
        ? forward
        : priceOption(
            forward,
            strike,
            series.base.priceParameters.yearlyVolatility * Math.sqrt(years),
            contract.record.optionType,
          );
    const digits = series.priceDigits;
    const price = Math.max(mark * (1 + noise), 10 ** (1 - digits));
    const halfSpread = Math.max(price * 0.0003, 2 * 10 ** -digits);
    const volume =
      series.dailyVolume * 0.02 * (0.5 + hashFraction(seed, 92, ordinal, step, Math.floor(tick / 10)));
    const openInterest =
      series.dailyVolume * 0.05 * (0.5 + hashFraction(seed, 93, ordinal, step, Math.floor(tick / 100)));
    const fundingPeriod = Math.floor(atMs / FUNDING_INTERVAL_MS);
    const idStep = hashNumbers(step, tick) * 2 ** 16 + (hashNumbers(tick, step) & 0xffff);
    return {
      id: ids.encode("derivative tick", ordinal, idStep),
      contractId: contract.record.id,
      exchangeId: contract.record.exchangeId,
      marketId: contract.record.marketId,
      timestamp: utc.format(atMs),
      price: formatDecimal(price, digits),
      volume: formatDecimal(volume, 4),
      volumeUsd: formatDecimal(volume * index, 2),
      bid: formatDecimal(Math.max(price - halfSpread, 10 ** -digits), digits),
      ask: formatDecimal(price + halfSpread, digits),
      openInterest: formatDecimal(openInterest, 4),
      openInterestUsd: formatDecimal(openInterest * index, 2),
      indexPrice: formatDecimal(index, digits),
      markPrice: formatDecimal(mark, digits),
      ...(expirationMs === undefined
        ? {
            fundingRate: formatDecimal(
              0.0001 + (hashFraction(seed, 94, ordinal, fundingPeriod) - 0.5) * 0.0004,
              8,
            ),
          }
        : {}),
    };
  }
}

/** Black's formula with zero interest. */
function priceOption(
  forward: number,
  strike: number,
  deviation: number,
  type: "CALL" | "PUT" | undefined,
): number {
  const sign = type === "PUT" ? -1 : 1;
  if (deviation < 1e-9) return Math.max(0, sign * (forward - strike));
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  return (
    sign * (forward * normalDistribution(sign * d1) - strike * normalDistribution(sign * (d1 - deviation)))
  );
}

/** The cumulative normal distribution, approximated by a logistic curve with an error below 1/7000. */
function normalDistribution(x: number): number {
  return 1 / (1 + Math.exp(-1.5976 * x - 0.070566 * x ** 3));
}
