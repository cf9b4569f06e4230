import {
  type Contract,
  type Contracts,
  type DerivativeType,
  derivativeTypes,
  type Include,
} from "../market/contracts.ts";
import { plain, UtcWriter } from "../market/format.ts";
import { fractionOf, hashOf } from "../market/hash.ts";
import type { IndexFigures } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { SimulatedExchange, Universe } from "../market/universe.ts";
import { Refusal } from "./errors.ts";
import type { WireWriter } from "./json-writer.ts";
import { QueryValues } from "./query-params.ts";

export interface DerivativesParts {
  readonly universe: Universe;
  readonly contracts: Contracts;
  readonly tickers: DerivativeTickers;
  readonly calendar: TickCalendar;
  readonly quirks: Quirks;
  readonly wire: WireWriter;
}

/** Answers /derivatives: contracts, one contract, and tickers. */
export class Derivatives {
  readonly #parts: DerivativesParts;

  constructor(parts: DerivativesParts) {
    this.#parts = parts;
  }

  contracts(typeText: string, query: URLSearchParams, nowMs: number): string {
    const { contracts, wire } = this.#parts;
    const values = this.#values(query);
    const type = typeOf(typeText);
    const exchangeId = values.requiredId("exchangeId");
    const marketId = values.id("marketId");
    const include = values.oneOf<Include>("include", ["ACTIVE", "ALL", "EXPIRED"]) ?? "ACTIVE";
    values.refuseComplaints();
    const listed = contracts.list(type, this.#exchange(exchangeId), include, nowMs);
    return `{"content":${wire.list(this.#ofMarket(listed, marketId).map(({ record }) => record))}}`;
  }

  contract(typeText: string, id: string, nowMs: number): string {
    const { universe, contracts, wire } = this.#parts;
    const type = typeOf(typeText);
    for (const exchange of universe.exchanges) {
      const found = contracts.list(type, exchange, "ALL", nowMs).find(({ record }) => record.id === id);
      if (found) return wire.record(found.record);
    }
    throw new Refusal(404, `No contract ${id}`);
  }

  tickers(typeText: string, query: URLSearchParams, nowMs: number): string {
    const { contracts, tickers, calendar, wire } = this.#parts;
    const values = this.#values(query);
    const type = typeOf(typeText);
    const exchangeId = values.requiredId("exchangeId");
    const marketId = values.id("marketId");
    const contractId = values.id("contractId");
    values.refuseComplaints();
    const active = contracts.list(type, this.#exchange(exchangeId), "ACTIVE", nowMs);
    const chosen = this.#ofMarket(active, marketId).filter(
      ({ record }) => contractId === undefined || record.id === contractId,
    );
    if (contractId !== undefined && chosen.length === 0)
      throw new Refusal(404, `No active contract ${contractId}`);
    const tick = calendar.newest(nowMs);
    return `{"content":${wire.list(chosen.map((contract) => tickers.record(contract, tick)))}}`;
  }

  #ofMarket(contracts: readonly Contract[], marketId: string | undefined): readonly Contract[] {
    if (marketId === undefined) return contracts;
    if (!this.#parts.universe.markets.some(({ id }) => id === marketId))
      throw new Refusal(404, `No market ${marketId}`);
    return contracts.filter(({ record }) => record.marketId === marketId);
  }

  #exchange(id: string): SimulatedExchange {
    const exchange = this.#parts.universe.exchanges.find((candidate) => candidate.id === id);
    if (!exchange) throw new Refusal(404, `No exchange ${id}`);
    return exchange;
  }

  #values(query: URLSearchParams): QueryValues {
    return new QueryValues("derivatives", query, this.#parts.quirks.ids);
  }
}

function typeOf(text: string): DerivativeType {
  const type = derivativeTypes.find((known) => known === text);
  if (type) return type;
  const message = `must be one of ${derivativeTypes.join(", ")}`;
  throw new Refusal(400, "Validation error", [
    { object: "derivatives", field: "derivativeType", rejectedValue: text, message },
  ]);
}

export interface DerivativeTickRecord {
  readonly id: string;
  readonly contractId: string;
  readonly exchangeId: string;
  readonly marketId: string;
  readonly timestamp: string;
  readonly price: string;
  readonly volume: string;
  readonly volumeUsd: string;
  readonly bid: string;
  readonly ask: string;
  readonly openInterest: string;
  readonly openInterestUsd: string;
  readonly indexPrice: string;
  readonly markPrice: string;
  /** Perpetuals only. */
  readonly fundingRate?: string;
}

const YEAR_MS = 31_557_600_000;
const FUNDING_MS = 8 * 3_600_000;

export interface DerivativeTickerParts {
  readonly seed: number;
  readonly figures: IndexFigures;
  readonly calendar: TickCalendar;
  readonly ids: RecordIds;
  readonly fractionDigits: 0 | 3 | 6;
}

/** Prices of contracts, near the index of their market. */
export class DerivativeTickers {
  readonly #parts: DerivativeTickerParts;
  readonly #utc: UtcWriter;

  constructor(parts: DerivativeTickerParts) {
    this.#parts = parts;
    this.#utc = new UtcWriter(parts.fractionDigits);
  }

  record(contract: Contract, tick: number): DerivativeTickRecord {
    const { seed, figures, calendar, ids } = this.#parts;
    const { series, ordinal, step, strike, expirationMs } = contract;
    const atMs = tick * calendar.tickMs;
    const index = Math.exp(figures.logAt(series, tick));
    const years = expirationMs === undefined ? 0 : Math.max(0, expirationMs - atMs) / YEAR_MS;
    const wobble = (fractionOf(seed, 91, ordinal, step, tick) - 0.5) * 0.0004;
    const forward = index * Math.exp(0.06 * years);
    const mark =
      strike === undefined
        ? forward
        : optionValue(
            forward,
            strike,
            series.base.path.yearlyVolatility * Math.sqrt(years),
            contract.record.optionType,
          );
    const digits = series.priceDigits;
    const price = Math.max(mark * (1 + wobble), 10 ** (1 - digits));
    const half = Math.max(price * 0.0003, 2 * 10 ** -digits);
    const volume =
      series.dailyVolume * 0.02 * (0.5 + fractionOf(seed, 92, ordinal, step, Math.floor(tick / 10)));
    const open =
      series.dailyVolume * 0.05 * (0.5 + fractionOf(seed, 93, ordinal, step, Math.floor(tick / 100)));
    const slot = Math.floor(atMs / FUNDING_MS);
    const unique = hashOf(step, tick) * 2 ** 16 + (hashOf(tick, step) & 0xffff);
    return {
      id: ids.id("derivative tick", ordinal, unique),
      contractId: contract.record.id,
      exchangeId: contract.record.exchangeId,
      marketId: contract.record.marketId,
      timestamp: this.#utc.write(atMs),
      price: plain(price, digits),
      volume: plain(volume, 4),
      volumeUsd: plain(volume * index, 2),
      bid: plain(Math.max(price - half, 10 ** -digits), digits),
      ask: plain(price + half, digits),
      openInterest: plain(open, 4),
      openInterestUsd: plain(open * index, 2),
      indexPrice: plain(index, digits),
      markPrice: plain(mark, digits),
      ...(expirationMs === undefined
        ? { fundingRate: plain(0.0001 + (fractionOf(seed, 94, ordinal, slot) - 0.5) * 0.0004, 8) }
        : {}),
    };
  }
}

/** Black's formula without interest. */
function optionValue(
  forward: number,
  strike: number,
  deviation: number,
  type: "CALL" | "PUT" | undefined,
): number {
  const sign = type === "PUT" ? -1 : 1;
  if (deviation < 1e-9) return Math.max(0, sign * (forward - strike));
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  return sign * (forward * normal(sign * d1) - strike * normal(sign * (d1 - deviation)));
}

/** The normal distribution, by a logistic curve that is within one part in seven thousand of it. */
function normal(x: number): number {
  return 1 / (1 + Math.exp(-1.5976 * x - 0.070566 * x ** 3));
}
