import { formatDecimal, UtcFormatter } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { IndexSeries, IndexTable, IndexValues } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { SimulatedExchange, SimulatedMarket, Universe } from "../market/universe.ts";
import { HttpError } from "./errors.ts";
import { Payload } from "./http-types.ts";
import type { JsonWriter } from "./json-writer.ts";
import type { PageCache } from "./page-cache.ts";
import { QueryParams } from "./query-params.ts";

export interface ExchangeTickRecord {
  readonly id: string;
  readonly exchangeId: string;
  readonly marketId: string;
  readonly last: string;
  readonly volume: string;
  readonly bid: string;
  readonly ask: string;
  readonly timestamp: string;
  readonly lastMoved: string;
}

/** One market on one exchange. */
interface Listing {
  readonly ordinal: number;
  readonly exchange: SimulatedExchange;
  readonly market: SimulatedMarket;
  readonly series: IndexSeries;
  /** A trade happens every so many ticks; in between, the record is refreshed and its price stands. */
  readonly ticksPerTrade: number;
}

export interface ExchangeTickersOptions {
  readonly seed: number;
  readonly universe: Universe;
  readonly table: IndexTable;
  readonly figures: IndexValues;
  readonly calendar: TickCalendar;
  readonly ids: RecordIds;
  readonly quirks: Quirks;
  readonly wire: JsonWriter;
  readonly cache: PageCache;
}

/** The exchange feed: for every listing the newest tick, near the market's weighted average. */
export class ExchangeTickers {
  readonly #options: ExchangeTickersOptions;
  readonly #utc: UtcFormatter;
  readonly #listings: readonly Listing[];
  readonly #byExchange: ReadonlyMap<string, readonly Listing[]>;
  readonly #byMarket: ReadonlyMap<string, readonly Listing[]>;

  constructor(parts: ExchangeTickersOptions) {
    this.#options = parts;
    this.#utc = new UtcFormatter(parts.quirks.fractionDigits);
    this.#listings = createListings(parts);
    this.#byExchange = Map.groupBy(this.#listings, ({ exchange }) => exchange.id);
    this.#byMarket = Map.groupBy(this.#listings, ({ market }) => market.id);
  }

  respond(query: URLSearchParams, nowMs: number): Payload {
    const { quirks, wire, calendar, cache, ids } = this.#options;
    const values = new QueryParams("exchange-ticker", query, quirks.ids);
    const exchangeId = values.id("exchangeId");
    const marketId = values.id("marketId");
    const startAfter = values.id("startAfter");
    const baseSymbol = values.text("baseSymbol");
    const quoteSymbol = values.text("quoteSymbol");
    if (baseSymbol !== undefined && quoteSymbol === undefined)
      values.addError("quoteSymbol", "must be given with baseSymbol");
    if (quoteSymbol !== undefined && baseSymbol === undefined)
      values.addError("baseSymbol", "must be given with quoteSymbol");
    values.throwIfInvalid();

    const tick = calendar.newestTick(nowMs);
    const named =
      baseSymbol === undefined || quoteSymbol === undefined
        ? undefined
        : this.#findMarketId(baseSymbol, quoteSymbol);
    const key = `exchange-ticker|${tick}|${exchangeId}|${marketId}|${named}|${startAfter}`;
    const kept = cache.get(key);
    if (kept) return kept.payload;

    let listings = this.#selectListings(exchangeId, marketId).filter((listing) =>
      this.#isTrading(listing, tick),
    );
    if (named !== undefined) listings = listings.filter(({ market }) => market.id === named);
    if (startAfter !== undefined) {
      const place = ids.decode(startAfter);
      if (place?.kind !== "exchange tick" || place.ordinal >= this.#listings.length)
        throw new HttpError(404, "startAfter names no existing record");
      const from = place.ordinal + (quirks.cursor === "exclusive" ? 1 : 0);
      listings = listings.filter(({ ordinal }) => ordinal >= from);
    }
    const limit = quirks.exchangeTickerPage || listings.length;
    const records = listings.slice(0, limit).map((listing) => this.#record(listing, tick));
    const lastId = records.at(-1)?.id;
    const end = wire.nextIdProperty(listings.length > limit ? lastId : undefined, lastId);
    const payload = new Payload(`{"content":${wire.formatList(records)}${end}}`);
    cache.set(key, { payload, oldest: tick });
    return payload;
  }

  /** The record of one market on one exchange at one tick; undefined when it is not listed or no longer trades. */
  record(exchangeId: string, marketId: string, tick: number): ExchangeTickRecord | undefined {
    const listing = this.#byMarket.get(marketId)?.find(({ exchange }) => exchange.id === exchangeId);
    return listing && this.#isTrading(listing, tick) ? this.#record(listing, tick) : undefined;
  }

  /** All records of one tick. */
  records(tick: number): ExchangeTickRecord[] {
    return this.#listings
      .filter((listing) => this.#isTrading(listing, tick))
      .map((listing) => this.#record(listing, tick));
  }

  #selectListings(exchangeId: string | undefined, marketId: string | undefined): readonly Listing[] {
    const { universe } = this.#options;
    if (exchangeId !== undefined && !universe.exchanges.some(({ id }) => id === exchangeId))
      throw new HttpError(404, `No exchange ${exchangeId}`);
    if (marketId !== undefined && !this.#options.table.byId(marketId))
      throw new HttpError(404, `No market ${marketId}`);
    if (marketId !== undefined) {
      const ofMarket = this.#byMarket.get(marketId) ?? [];
      return exchangeId === undefined
        ? ofMarket
        : ofMarket.filter(({ exchange }) => exchange.id === exchangeId);
    }
    return exchangeId === undefined ? this.#listings : (this.#byExchange.get(exchangeId) ?? []);
  }

  #findMarketId(base: string, quote: string): string {
    const { markets } = this.#options.universe;
    const found = markets.filter((market) => market.base.symbol === base && market.quote.symbol === quote);
    if (found.length > 1)
      throw new HttpError(400, `Duplicate symbols: ${base}/${quote} names ${found.length} markets`);
    return found[0]?.id ?? "";
  }

  #isTrading({ series }: Listing, tick: number): boolean {
    const { first, end } = this.#options.calendar.tickRange(series);
    return tick >= first && tick < end;
  }

  #record(
    { ordinal, exchange, market, series, ticksPerTrade: restless }: Listing,
    tick: number,
  ): ExchangeTickRecord {
    const { seed, figures, calendar, ids } = this.#options;
    const moved = tick - ((tick + (hashNumbers(seed, 81, ordinal) % restless)) % restless);
    const steady = (hashFraction(seed, 82, ordinal) - 0.5) * 0.0008;
    const wobble = (hashFraction(seed, 83, ordinal, moved) - 0.5) * 0.0004;
    const last = Math.exp(figures.logPriceAt(series, moved) + steady + wobble);
    const unit = 10 ** -series.priceDigits;
    const half = Math.max(2 * unit, last * (0.0001 + 0.0008 * hashFraction(seed, 84, ordinal)));
    const share = 1 / (exchange.ordinal + 2) ** 1.2;
    const movedMs = moved * calendar.tickMs - (hashNumbers(seed, 85, ordinal, moved) % calendar.tickMs);
    return {
      id: ids.encode("exchange tick", ordinal, tick),
      exchangeId: exchange.id,
      marketId: market.id,
      last: formatDecimal(last, series.priceDigits),
      volume: formatDecimal(figures.volumeAt(series, tick) * share, 8),
      bid: formatDecimal(last - half * 0.9, series.priceDigits),
      ask: formatDecimal(last + half * 1.1, series.priceDigits),
      timestamp: this.#utc.format(tick * calendar.tickMs),
      lastMoved: this.#utc.format(movedMs),
    };
  }
}

function createListings({ seed, universe, table }: ExchangeTickersOptions): Listing[] {
  const listings: Listing[] = [];
  for (const exchange of universe.exchanges) {
    if (exchange.status === "INACTIVE") continue;
    for (const market of exchange.markets) {
      const series = table.ofType("MWA")[market.ordinal];
      if (!series) continue;
      const liquidity = Math.floor(Math.log2(1 + market.ordinal / 4));
      const usual = 1 + (hashNumbers(seed, 86, exchange.ordinal, market.ordinal) % (1 + liquidity * 2));
      const restless = exchange.status === "MAINTENANCE" ? 10_000 : usual;
      listings.push({ ordinal: listings.length, exchange, market, series, ticksPerTrade: restless });
    }
  }
  return listings;
}
