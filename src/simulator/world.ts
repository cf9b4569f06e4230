import { createMarketModel, type MarketModelOptions } from "./market/market-model.ts";
import { Oracle } from "./oracle.ts";
import { BarHistory } from "./rest/bar-history.ts";
import { ExchangeTickers } from "./rest/exchange-tickers.ts";
import { HistoryPages } from "./rest/history.ts";
import { PageCache } from "./rest/page-cache.ts";
import { TickHistory } from "./rest/tick-history.ts";

export type World = ReturnType<typeof createWorld>;

/** Creates the data of the simulated service and its endpoints. They have no clock: every call passes the time. */
export function createWorld({
  cacheBytes,
  ...options
}: MarketModelOptions & { readonly cacheBytes: number }) {
  const market = createMarketModel(options);
  const cache = new PageCache(cacheBytes);
  const ticks = new TickHistory(market);
  const bars = new BarHistory(market);
  const exchangeTickers = new ExchangeTickers(market, cache);
  return {
    ...market,
    ticks,
    exchangeTickers,
    indexTicks: new HistoryPages(ticks, "read:index-ticker", market, cache),
    dailyBars: new HistoryPages(bars, "read:ohlcv", market, cache),
    oracle: new Oracle(market, { ticks, bars, exchangeTickers }),
  };
}
