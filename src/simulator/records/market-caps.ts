import { DAY_MS, formatDecimal, formatUtc } from "../market/format.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";

const RANKING_INTERVAL_MS = 300_000;
const CHANGE_PERIODS_DAYS = [1, 7, 30];

/** The ranking at `nowMs`: every five minutes a new one, from the GWA prices of that time. */
export function rankMarketCaps(market: MarketModel, nowMs: number, percentChange: boolean) {
  const { table, indexValues, calendar, ids } = market;
  const number = Math.floor(nowMs / RANKING_INTERVAL_MS);
  const tick = calendar.newestTick(number * RANKING_INTERVAL_MS);
  const priced = table.byType.GWA.filter(
    (series) => series.base.type === "CRYPTO" && calendar.isListed(series, tick),
  ).map((series) => {
    const price = formatDecimal(Math.exp(indexValues.logPriceAt(series, tick)), series.priceDigits);
    const volume = indexValues.volumeAt(series, tick);
    return { series, price, volume, cap: Number(price) * series.base.freeFloatSupply };
  });
  const byVolume = priced.toSorted(
    (one, other) => other.volume * Number(other.price) - one.volume * Number(one.price),
  );
  const volumeRanks = new Map(byVolume.map(({ series }, at) => [series, at + 1]));
  return priced
    .sort((one, other) => other.cap - one.cap || one.series.rank - other.series.rank)
    .map(({ series, price, volume, cap }, at) => {
      const { base } = series;
      return {
        id: ids.encode("market cap", base.ordinal, number),
        assetId: base.id,
        timestamp: formatUtc(number * RANKING_INTERVAL_MS),
        marketCapRank: at + 1,
        volumeRank: volumeRanks.get(series) ?? 0,
        price,
        volume: formatDecimal(volume, series.volumeDigits),
        totalSupply: formatDecimal(base.totalSupply, 0),
        freeFloatSupply: formatDecimal(base.freeFloatSupply, 0),
        marketCap: formatDecimal(cap, 2),
        totalMarketCap: formatDecimal(Number(price) * base.totalSupply, 2),
        ...(percentChange ? percentChanges(market, series, tick) : {}),
      };
    });
}

function percentChanges({ indexValues, calendar }: MarketModel, series: IndexSeries, tick: number) {
  const { first } = calendar.tickRange(series);
  const change = (valueAt: (tick: number) => number) => {
    const [change24h = null, change7d = null, change30d = null] = CHANGE_PERIODS_DAYS.map((days) => {
      const then = tick - Math.round((days * DAY_MS) / calendar.tickMs);
      return then < first ? null : formatDecimal((valueAt(tick) / valueAt(then) - 1) * 100, 4);
    });
    return { change24h, change7d, change30d };
  };
  // The simulated supply is constant, so capitalisation changes like the price.
  const price = change((at) => Math.exp(indexValues.logPriceAt(series, at)));
  return {
    marketCapPercentChange: price,
    totalMarketCapPercentChange: price,
    volumePercentChange: change((at) => indexValues.volumeAt(series, at)),
    pricePercentChange: price,
  };
}
