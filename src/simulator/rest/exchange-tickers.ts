import { formatDecimal, formatUtc } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedExchange, SimulatedMarket } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import { formatPage, nextIdOf } from "./http-types.ts";
import { QueryParams } from "./query-params.ts";

export type ExchangeTickRecord = ReturnType<ExchangeTickers["records"]>[number];

/** One market on one exchange. */
interface Listing {
  readonly ordinal: number;
  readonly exchange: SimulatedExchange;
  readonly market: SimulatedMarket;
  readonly series: IndexSeries;
  /** Number of ticks between two trades. Between trades the price stays the same and only the timestamp advances. */
  readonly ticksPerTrade: number;
}

/** Serves /exchange-ticker: the newest tick of each listing, near the average of its market (MWA). */
export class ExchangeTickers {
  readonly #market: MarketModel;
  readonly #listings: readonly Listing[];
  readonly #byMarket: ReadonlyMap<string, readonly Listing[]>;

  constructor(market: MarketModel) {
    this.#market = market;
    this.#listings = createListings(market);
    this.#byMarket = Map.groupBy(this.#listings, ({ market }) => market.id);
  }

  respond(query: URLSearchParams, nowMs: number): string {
    const { quirks, calendar, ids } = this.#market;
    const params = new QueryParams("exchange-ticker", query, quirks);
    const exchangeId = params.id("exchangeId");
    const marketId = params.id("marketId");
    const startAfter = params.id("startAfter");
    const baseSymbol = params.text("baseSymbol");
    const quoteSymbol = params.text("quoteSymbol");
    if (baseSymbol !== undefined && quoteSymbol === undefined)
      params.addError("quoteSymbol", "must be given with baseSymbol");
    if (quoteSymbol !== undefined && baseSymbol === undefined)
      params.addError("baseSymbol", "must be given with quoteSymbol");
    params.throwIfInvalid();

    const tick = calendar.newestTick(nowMs);
    const namedMarketId =
      baseSymbol === undefined || quoteSymbol === undefined
        ? undefined
        : this.#findMarketId(baseSymbol, quoteSymbol);
    let listings = this.#selectListings(exchangeId, marketId).filter(({ series }) =>
      calendar.isListed(series, tick),
    );
    if (namedMarketId !== undefined) listings = listings.filter(({ market }) => market.id === namedMarketId);
    if (startAfter !== undefined) {
      const position = ids.decode(startAfter);
      if (position?.kind !== "exchange tick" || position.ordinal >= this.#listings.length)
        throw new HttpError(404, "startAfter names no existing record");
      const from = position.ordinal + (quirks.cursor === "exclusive" ? 1 : 0);
      listings = listings.filter(({ ordinal }) => ordinal >= from);
    }
    const limit = quirks.exchangeTickerPage || listings.length;
    const records = listings.slice(0, limit).map((listing) => this.#record(listing, tick));
    const lastId = records.at(-1)?.id;
    return formatPage(records, nextIdOf(quirks.lastPage, listings.length > limit, lastId));
  }

  /** The record of one market on one exchange; undefined when it is not listed or does not trade at this tick. */
  record(exchangeId: string, marketId: string, tick: number) {
    const listing = this.#byMarket.get(marketId)?.find(({ exchange }) => exchange.id === exchangeId);
    return listing && this.#market.calendar.isListed(listing.series, tick)
      ? this.#record(listing, tick)
      : undefined;
  }

  /** All records at one tick. */
  records(tick: number) {
    return this.#listings
      .filter(({ series }) => this.#market.calendar.isListed(series, tick))
      .map((listing) => this.#record(listing, tick));
  }

  #selectListings(exchangeId: string | undefined, marketId: string | undefined): readonly Listing[] {
    const { universe, table } = this.#market;
    if (exchangeId !== undefined && !universe.exchanges.some(({ id }) => id === exchangeId))
      throw new HttpError(404, `No exchange ${exchangeId}`);
    if (marketId !== undefined && !table.byId(marketId)) throw new HttpError(404, `No market ${marketId}`);
    const listings = marketId === undefined ? this.#listings : (this.#byMarket.get(marketId) ?? []);
    return listings.filter(({ exchange }) => exchangeId === undefined || exchange.id === exchangeId);
  }

  #findMarketId(base: string, quote: string): string {
    const { markets } = this.#market.universe;
    const found = markets.filter((market) => market.base.symbol === base && market.quote.symbol === quote);
    if (found.length > 1)
      throw new HttpError(400, `Duplicate symbols: ${base}/${quote} names ${found.length} markets`);
    return found[0]?.id ?? "";
  }

  #record({ ordinal, exchange, market, series, ticksPerTrade }: Listing, tick: number) {
    const { seed, indexValues, calendar, ids } = this.#market;
    const lastTradeTick = tick - ((tick + (hashNumbers(seed, 81, ordinal) % ticksPerTrade)) % ticksPerTrade);
    const fixedOffset = (hashFraction(seed, 82, ordinal) - 0.5) * 0.0008;
    const noise = (hashFraction(seed, 83, ordinal, lastTradeTick) - 0.5) * 0.0004;
    const last = Math.exp(indexValues.logPriceAt(series, lastTradeTick) + fixedOffset + noise);
    const smallestUnit = 10 ** -series.priceDigits;
    const halfSpread = Math.max(2 * smallestUnit, last * (0.0001 + 0.0008 * hashFraction(seed, 84, ordinal)));
    const fraction = 1 / (exchange.ordinal + 2) ** 1.2;
    const lastMovedMs =
      lastTradeTick * calendar.tickMs - (hashNumbers(seed, 85, ordinal, lastTradeTick) % calendar.tickMs);
    return {
      id: ids.encode("exchange tick", ordinal, tick),
      exchangeId: exchange.id,
      marketId: market.id,
      last: formatDecimal(last, series.priceDigits),
      volume: formatDecimal(indexValues.volumeAt(series, tick) * fraction, 8),
      bid: formatDecimal(last - halfSpread * 0.9, series.priceDigits),
      ask: formatDecimal(last + halfSpread * 1.1, series.priceDigits),
      timestamp: formatUtc(tick * calendar.tickMs),
      lastMoved: formatUtc(lastMovedMs),
    };
  }
}

function createListings({ seed, universe, table }: MarketModel): Listing[] {
  const listings: Listing[] = [];
  for (const exchange of universe.exchanges) {
    if (exchange.status === "INACTIVE") continue;
    for (const market of exchange.markets) {
      const series = table.ofType("MWA")[market.ordinal];
      if (!series) continue;
      const liquidity = Math.floor(Math.log2(1 + market.ordinal / 4));
      const normalTicksPerTrade =
        1 + (hashNumbers(seed, 86, exchange.ordinal, market.ordinal) % (1 + liquidity * 2));
      const ticksPerTrade = exchange.status === "MAINTENANCE" ? 10_000 : normalTicksPerTrade;
      listings.push({ ordinal: listings.length, exchange, market, series, ticksPerTrade });
    }
  }
  return listings;
}
