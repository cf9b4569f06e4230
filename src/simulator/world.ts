import { createMarketModel, type MarketModelOptions } from "./market/market-model.ts";
import { BarHistory } from "./rest/bar-history.ts";
import { ExchangeTickers } from "./rest/exchange-tickers.ts";
import { HistoryPages } from "./rest/history.ts";
import { TickHistory } from "./rest/tick-history.ts";

export type World = ReturnType<typeof createWorld>;

/** Creates the data of the simulated service and its endpoints. They have no clock: every call passes the time. */
export function createWorld(options: MarketModelOptions) {
  const market = createMarketModel(options);
  const ticks = new TickHistory(market);
  const bars = new BarHistory(market);
  return {
    ...market,
    ticks,
    bars,
    exchangeTickers: new ExchangeTickers(market),
    indexTicks: new HistoryPages(ticks, "read:index-ticker", market),
    dailyBars: new HistoryPages(bars, "read:ohlcv", market),
  };
}
