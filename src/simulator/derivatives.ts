import {
  type Contract,
  type Contracts,
  type DerivativeType,
  derivativeTypes,
  type Include,
} from "./contracts.ts";
import type { DerivativeTickers } from "./derivative-tickers.ts";
import { QueryValues } from "./query-values.ts";
import type { Quirks } from "./quirks.ts";
import { Refusal } from "./refusal.ts";
import type { TickCalendar } from "./tick-calendar.ts";
import type { SimulatedExchange, Universe } from "./universe.ts";
import type { WireWriter } from "./wire.ts";

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
