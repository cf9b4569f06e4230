import { createMarketModel, type MarketModelOptions } from "./market/market-model.ts";
import { BarHistory } from "./records/bar-history.ts";
import { createExchangeTickers } from "./records/exchange-tickers.ts";
import { TickHistory } from "./records/tick-history.ts";

export type World = ReturnType<typeof createWorld>;

/** Creates the data of the simulated service. It has no clock: every call passes the time. */
export function createWorld(options: MarketModelOptions) {
  const market = createMarketModel(options);
  return {
    ...market,
    ticks: new TickHistory(market),
    bars: new BarHistory(market),
    exchangeTickers: createExchangeTickers(market),
  };
}
