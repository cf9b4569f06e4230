import type { ContractFilter } from "../../api-server/source.ts";
import { type DerivativeType, derivativeTypes } from "../../model/streams.ts";
import type { MarketModel } from "../market/market-model.ts";
import { DAY_MS, formatUtc } from "./format.ts";
import type { IndexSeries } from "./indexes.ts";
import type { SimulatedExchange, SimulatedMarket } from "./universe.ts";

/** A contract, with the inputs of its price. */
export type Contract = ReturnType<typeof listContracts>[number];

interface ContractTerm {
  readonly week: number;
  readonly listingMs: number;
  readonly expirationMs: number;
}

/** What distinguishes the contracts of one type in one market. */
interface ContractVariant extends Partial<ContractTerm> {
  readonly name: string;
  readonly step: number;
  readonly strike?: number;
  readonly optionType?: "CALL" | "PUT";
}

const MARKETS_PER_EXCHANGE = { perpetuals: 20, futures: 4, options: 2 };
/** From one expiry to the next, and how many are listed. */
const EXPIRIES = {
  futures: { weeks: 13, upcoming: 3, past: 8 },
  options: { weeks: 1, upcoming: 4, past: 12 },
};

/** Derives the contracts that an exchange lists from the time alone; nothing is stored. */
export function listContracts(
  model: MarketModel,
  type: DerivativeType,
  exchange: SimulatedExchange,
  include: ContractFilter,
  nowMs: number,
) {
  const markets = exchange.markets.filter(
    ({ ordinal, base, quote }) =>
      ordinal < 8192 &&
      base.type === "CRYPTO" &&
      base.status === "ACTIVE" &&
      base.priceParameters.meanReversionDays > 1 &&
      /^USDT?$/.test(quote.symbol),
  );
  const listed = exchange.derivatives ? markets.slice(0, MARKETS_PER_EXCHANGE[type]) : [];
  return listed.flatMap((market) => {
    const series = model.table.byType.MWA[market.ordinal];
    if (!series) return [];
    return listVariants(model, type, market, series, include, nowMs).map((variant) =>
      createContract(model, type, exchange, market, series, variant),
    );
  });
}

function listVariants(
  model: MarketModel,
  type: DerivativeType,
  { base, quote }: SimulatedMarket,
  series: IndexSeries,
  include: ContractFilter,
  nowMs: number,
): ContractVariant[] {
  const pair = `${base.symbol}${quote.symbol}`;
  if (type === "perpetuals") return include === "EXPIRED" ? [] : [{ name: `${pair}-PERP`, step: 0 }];
  const terms = listTerms(EXPIRIES[type], nowMs).filter(
    ({ expirationMs }) => include === "ALL" || (include === "EXPIRED") === expirationMs <= nowMs,
  );
  return terms.flatMap((term) => {
    const expiry = formatExpiry(term.expirationMs);
    return type === "futures"
      ? [{ ...term, name: `${pair}-${expiry}`, step: term.week * 64 }]
      : listOptions(model, series, `${base.symbol}-${expiry}`, term);
  });
}

function listOptions(
  model: MarketModel,
  series: IndexSeries,
  name: string,
  term: ContractTerm,
): ContractVariant[] {
  const { indexValues, calendar, optionStrikes } = model;
  const atListing = Math.exp(indexValues.logPriceAt(series, calendar.newestTick(term.listingMs)));
  const distance = roundToStrikeDistance(atListing * 0.04);
  const middle = Math.round(atListing / distance) * distance;
  return Array.from({ length: optionStrikes }, (_, at) => {
    const strike = Number((middle + (at - (optionStrikes - 1) / 2) * distance).toPrecision(8));
    return (["CALL", "PUT"] as const).map((optionType, putStep) => ({
      ...term,
      name: `${name}-${strike}-${optionType === "PUT" ? "P" : "C"}`,
      step: term.week * 64 + at * 2 + putStep,
      strike,
      optionType,
    }));
  }).flat();
}

function createContract(
  { ids }: MarketModel,
  type: DerivativeType,
  exchange: SimulatedExchange,
  market: SimulatedMarket,
  series: IndexSeries,
  { name, step, listingMs, expirationMs, strike, optionType }: ContractVariant,
) {
  const typeNumber = derivativeTypes.indexOf(type);
  /** Its position among all contracts, encoded in its id. */
  const ordinal = (typeNumber * 4096 + exchange.ordinal) * 8192 + market.ordinal;
  const isInverse = exchange.name === "BitMEX" || exchange.name === "Deribit";
  const isInQuote = isInverse && type !== "options";
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
      exchangeName: name,
      settlementCurrency: isInverse ? market.base.symbol : market.quote.symbol,
      contractValue: isInQuote ? "100" : "1",
      valueCurrency: isInQuote ? market.quote.symbol : market.base.symbol,
      ...(optionType ? { optionType } : {}),
      ...(strike === undefined ? {} : { optionStrike: String(strike) }),
      ...(listingMs === undefined ? {} : { listing: formatUtc(listingMs) }),
      ...(expirationMs === undefined ? {} : { expiration: formatUtc(expirationMs) }),
    },
  };
}

/** A contract is listed when as many expiries as are upcoming are left until its own. */
function listTerms({ weeks, upcoming, past }: (typeof EXPIRIES)["futures"], nowMs: number): ContractTerm[] {
  const nextWeek = Math.floor((nowMs - FIRST_FRIDAY_MS) / WEEK_MS) + 1;
  const next = QUARTER_END + Math.ceil((nextWeek - QUARTER_END) / weeks) * weeks;
  return Array.from({ length: past + upcoming }, (_, at) => {
    const week = next + (at - past) * weeks;
    return { week, listingMs: fridayMs(week - upcoming * weeks), expirationMs: fridayMs(week) };
  });
}

/** The nearest of 1, 2, 5 times a power of ten. */
function roundToStrikeDistance(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const digit = value / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

const WEEK_MS = 7 * DAY_MS;
/** Contracts expire on Fridays at 08:00 UTC. */
const FIRST_FRIDAY_MS = Date.UTC(1970, 0, 2, 8);
/** From this week on every thirteenth is the last of a quarter, from 2023 to 2027. */
const QUARTER_END = 9;

function fridayMs(week: number): number {
  return FIRST_FRIDAY_MS + week * WEEK_MS;
}

/** For example 27MAR26, as exchanges name their expiries. */
function formatExpiry(ms: number): string {
  return new Date(ms)
    .toUTCString()
    .replace(/^.{5}0?(\d+) (...) ..(..).*$/, "$1$2$3")
    .toUpperCase();
}
