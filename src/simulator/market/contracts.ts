import { DAY_MS } from "./format.ts";
import type { IndexSeries } from "./indexes.ts";
import type { Market } from "./market.ts";
import type { SimulatedExchange, SimulatedMarket } from "./universe.ts";

export const simulatedDerivativeTypes = ["futures", "perpetuals", "options"] as const;
export type SimulatedDerivativeType = (typeof simulatedDerivativeTypes)[number];
export type ContractFilter = "ACTIVE" | "ALL" | "EXPIRED";

export interface DerivativeContractRecord {
  readonly id: string;
  readonly exchangeId: string;
  readonly marketId: string;
  readonly exchangeName: string;
  readonly settlementCurrency: string;
  readonly contractValue: string;
  readonly valueCurrency: string;
  readonly optionType?: "CALL" | "PUT";
  readonly optionStrike?: string;
  readonly listing?: string;
  readonly expiration?: string;
}

/** A contract, with the inputs of its price. */
export interface Contract {
  readonly record: DerivativeContractRecord;
  readonly series: IndexSeries;
  /** Its position among all contracts, encoded in its id. */
  readonly ordinal: number;
  readonly step: number;
  readonly expirationMs: number | undefined;
  readonly strike: number | undefined;
}

interface ContractTerm {
  readonly week: number;
  readonly listingMs: number;
}

const PERPETUAL_MARKETS = 20;
const FUTURE_MARKETS = 4;
const OPTION_MARKETS = 2;
const QUARTERLY_EXPIRIES = { upcoming: 3, past: 8 };
const WEEKLY_EXPIRIES = { upcoming: 4, past: 12 };

/** Derives the contracts that an exchange lists from the time alone; nothing is stored. */
export class Contracts {
  readonly #market: Market;

  constructor(market: Market) {
    this.#market = market;
  }

  list(
    type: SimulatedDerivativeType,
    exchange: SimulatedExchange,
    include: ContractFilter,
    nowMs: number,
  ): Contract[] {
    if (!exchange.derivatives) return [];
    const markets = exchange.markets.filter(
      ({ ordinal, base, quote }) =>
        ordinal < 8192 &&
        base.type === "CRYPTO" &&
        base.status === "ACTIVE" &&
        base.priceParameters.meanReversionDays > 1 &&
        /^USDT?$/.test(quote.symbol),
    );
    if (type === "perpetuals") {
      if (include === "EXPIRED") return [];
      return markets.slice(0, PERPETUAL_MARKETS).flatMap((market) => this.#perpetual(exchange, market) ?? []);
    }
    const matchesFilter = ({ week }: ContractTerm) => {
      return include === "ALL" || (include === "EXPIRED") === fridayMs(week) <= nowMs;
    };
    if (type === "futures") {
      const terms = quarterlyTerms(nowMs).filter(matchesFilter);
      return markets
        .slice(0, FUTURE_MARKETS)
        .flatMap((market) => terms.flatMap((term) => this.#future(exchange, market, term) ?? []));
    }
    const terms = weeklyTerms(nowMs).filter(matchesFilter);
    return markets
      .slice(0, OPTION_MARKETS)
      .flatMap((market) => terms.flatMap((term) => this.#optionContracts(exchange, market, term)));
  }

  #perpetual(exchange: SimulatedExchange, market: SimulatedMarket): Contract | undefined {
    const name = `${market.base.symbol}${market.quote.symbol}-PERP`;
    return this.#contract(1, exchange, market, 0, name, {});
  }

  #future(
    exchange: SimulatedExchange,
    market: SimulatedMarket,
    { week, listingMs }: ContractTerm,
  ): Contract | undefined {
    const name = `${market.base.symbol}${market.quote.symbol}-${formatExpiry(fridayMs(week))}`;
    return this.#contract(0, exchange, market, week * 64, name, { listingMs, expirationMs: fridayMs(week) });
  }

  #optionContracts(
    exchange: SimulatedExchange,
    market: SimulatedMarket,
    { week, listingMs }: ContractTerm,
  ): Contract[] {
    const { table, indexValues, calendar, quirks } = this.#market;
    const series = table.ofType("MWA")[market.ordinal];
    if (!series) return [];
    const atListing = Math.exp(indexValues.logPriceAt(series, calendar.newestTick(listingMs)));
    const distance = roundToStrikeDistance(atListing * 0.04);
    const middle = Math.round(atListing / distance) * distance;
    const found: Contract[] = [];
    for (let at = 0; at < quirks.optionStrikes; at++) {
      const strike = Number((middle + (at - (quirks.optionStrikes - 1) / 2) * distance).toPrecision(8));
      for (const optionType of ["CALL", "PUT"] as const) {
        const isPut = optionType === "PUT";
        const name = `${market.base.symbol}-${formatExpiry(fridayMs(week))}-${strike}-${isPut ? "P" : "C"}`;
        const step = week * 64 + at * 2 + (isPut ? 1 : 0);
        const details = { listingMs, expirationMs: fridayMs(week), strike, optionType };
        const contract = this.#contract(2, exchange, market, step, name, details);
        if (contract) found.push(contract);
      }
    }
    return found;
  }

  #contract(
    type: number,
    exchange: SimulatedExchange,
    market: SimulatedMarket,
    step: number,
    exchangeName: string,
    details: { listingMs?: number; expirationMs?: number; strike?: number; optionType?: "CALL" | "PUT" },
  ): Contract | undefined {
    const { table, ids, utc } = this.#market;
    const series = table.ofType("MWA")[market.ordinal];
    if (!series) return undefined;
    const ordinal = (type * 4096 + exchange.ordinal) * 8192 + market.ordinal;
    const isInverse = exchange.name === "BitMEX" || exchange.name === "Deribit";
    const { listingMs, expirationMs, strike, optionType } = details;
    return {
      series,
      ordinal,
      step,
      expirationMs,
      strike,
      record: {
        id: ids.encode("contract", ordinal, step),
        exchangeId: exchange.id,
        marketId: market.id,
        exchangeName,
        settlementCurrency: isInverse ? market.base.symbol : market.quote.symbol,
        contractValue: isInverse && type !== 2 ? "100" : "1",
        valueCurrency: isInverse && type !== 2 ? market.quote.symbol : market.base.symbol,
        ...(optionType ? { optionType } : {}),
        ...(strike === undefined ? {} : { optionStrike: String(strike) }),
        ...(listingMs === undefined ? {} : { listing: utc.format(listingMs) }),
        ...(expirationMs === undefined ? {} : { expiration: utc.format(expirationMs) }),
      },
    };
  }
}

function quarterlyTerms(nowMs: number): ContractTerm[] {
  const next = firstQuarterAfter(nowMs);
  return Array.from({ length: QUARTERLY_EXPIRIES.past + QUARTERLY_EXPIRIES.upcoming }, (_, at) => {
    const quarter = next - QUARTERLY_EXPIRIES.past + at;
    return {
      week: lastWeekOfQuarter(quarter),
      listingMs: fridayMs(lastWeekOfQuarter(quarter - QUARTERLY_EXPIRIES.upcoming)),
    };
  });
}

function weeklyTerms(nowMs: number): ContractTerm[] {
  const next = firstWeekAfter(nowMs);
  return Array.from({ length: WEEKLY_EXPIRIES.past + WEEKLY_EXPIRIES.upcoming }, (_, at) => {
    const week = next - WEEKLY_EXPIRIES.past + at;
    return { week, listingMs: fridayMs(week - WEEKLY_EXPIRIES.upcoming) };
  });
}

/** The nearest of 1, 2, 5 times a power of ten. */
function roundToStrikeDistance(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const digit = value / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

const WEEK_MS = 7 * DAY_MS;
/** Contracts expire on Fridays at 08:00 UTC; 1 January 1970 was a Thursday. */
const FIRST_FRIDAY_MS = DAY_MS + 8 * 3_600_000;

/** The Friday of week `week` since 1970. */
function fridayMs(week: number): number {
  return FIRST_FRIDAY_MS + week * WEEK_MS;
}

/** The first week whose Friday is after `ms`. */
function firstWeekAfter(ms: number): number {
  return Math.floor((ms - FIRST_FRIDAY_MS) / WEEK_MS) + 1;
}

/** The week of the last Friday of a quarter; quarter 0 is the first of 1970. */
function lastWeekOfQuarter(quarter: number): number {
  const nextQuarter = Date.UTC(1970 + Math.floor((quarter + 1) / 4), ((quarter + 1) % 4) * 3, 1);
  return firstWeekAfter(nextQuarter) - 1;
}

/** The first quarter whose last Friday is after `ms`. */
function firstQuarterAfter(ms: number): number {
  const date = new Date(ms);
  const quarter = (date.getUTCFullYear() - 1970) * 4 + Math.floor(date.getUTCMonth() / 3);
  return fridayMs(lastWeekOfQuarter(quarter)) > ms ? quarter : quarter + 1;
}

const months = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");

/** For example 27MAR26, as exchanges name their expiries. */
function formatExpiry(ms: number): string {
  const date = new Date(ms);
  return `${date.getUTCDate()}${months[date.getUTCMonth()]}${String(date.getUTCFullYear() % 100).padStart(2, "0")}`;
}
