import { formatDecimal, formatUtc } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { SimulatedExchange, SimulatedMarket } from "../market/universe.ts";

/** One market on one exchange. */
interface Listing {
  readonly ordinal: number;
  readonly exchange: SimulatedExchange;
  readonly market: SimulatedMarket;
  readonly series: IndexSeries;
  /** Number of ticks between two trades. Between trades the price stays the same and only the timestamp advances. */
  readonly ticksPerTrade: number;
}

/** Reads the tickers of all listings at a tick, or of those that are selected. They are near the average of their markets (MWA). */
export function createExchangeTickers(market: MarketModel) {
  const listings = createListings(market);
  return (tick: number, select: (listing: Listing) => boolean = () => true) =>
    listings
      .filter((listing) => select(listing) && market.calendar.isListed(listing.series, tick))
      .map((listing) => createTicker(market, listing, tick));
}

function createTicker(
  { seed, indexValues, calendar, ids }: MarketModel,
  { ordinal, exchange, market, series, ticksPerTrade }: Listing,
  tick: number,
) {
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

function createListings({ seed, universe, table }: MarketModel): Listing[] {
  const listings: Listing[] = [];
  for (const exchange of universe.exchanges) {
    if (exchange.status === "INACTIVE") continue;
    for (const market of exchange.markets) {
      const series = table.byType.MWA[market.ordinal];
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
