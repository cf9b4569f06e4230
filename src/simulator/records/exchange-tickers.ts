import { formatDecimal, formatUtc } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedExchange, SimulatedMarket } from "../market/universe.ts";

/** One market on one exchange. */
export interface Listing {
  readonly ordinal: number;
  readonly exchange: SimulatedExchange;
  readonly market: SimulatedMarket;
  readonly series: IndexSeries;
  /** Number of ticks between two trades. Between trades the price stays the same and only the timestamp advances. */
  readonly ticksPerTrade: number;
}

/** The tickers of all listings, near the average of their markets (MWA). */
export class ExchangeTickers {
  readonly #market: MarketModel;
  readonly listings: readonly Listing[];

  constructor(market: MarketModel) {
    this.#market = market;
    this.listings = createListings(market);
  }

  /** The records at one tick, of all listings or of those that are selected. */
  records(tick: number, select: (listing: Listing) => boolean = () => true) {
    return this.listings
      .filter((listing) => select(listing) && this.#market.calendar.isListed(listing.series, tick))
      .map((listing) => this.#record(listing, tick));
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
      const rarity = 2 * Math.floor(Math.log2(1 + market.ordinal / 4));
      const isInMaintenance = exchange.status === "MAINTENANCE";
      const pause = hashNumbers(seed, 86, exchange.ordinal, market.ordinal) % (1 + rarity);
      const ticksPerTrade = isInMaintenance ? 10_000 : 1 + pause;
      listings.push({ ordinal: listings.length, exchange, market, series, ticksPerTrade });
    }
  }
  return listings;
}
