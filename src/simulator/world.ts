import { createMarketModel, type MarketModelOptions } from "./market/market-model.ts";
import { createExchangeTickers } from "./records/exchange-tickers.ts";
import { BarHistory, TickHistory } from "./records/history.ts";

export type World = ReturnType<typeof createWorld>;

/** The data of the simulated service. */
export function createWorld(options: MarketModelOptions) {
  const market = createMarketModel(options);
  return {
    ...market,
    ticks: new TickHistory(market),
    bars: new BarHistory(market),
    exchangeTickers: createExchangeTickers(market),
  };
}
