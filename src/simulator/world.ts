import { Contracts } from "./market/contracts.ts";
import { createMarketModel, type MarketModelOptions } from "./market/market-model.ts";
import { Oracle } from "./oracle.ts";
import { BarHistory } from "./rest/bar-history.ts";
import { Derivatives, DerivativeTickers } from "./rest/derivatives.ts";
import { ExchangeTickers } from "./rest/exchange-tickers.ts";
import { HistoryPages } from "./rest/history.ts";
import { JsonWriter } from "./rest/json-writer.ts";
import { Lookups } from "./rest/lookups.ts";
import { MarketCaps } from "./rest/market-caps.ts";
import { PageCache } from "./rest/page-cache.ts";
import { TickHistory } from "./rest/tick-history.ts";

export type World = ReturnType<typeof createWorld>;

/** Creates the data of the simulated service and its endpoints. They have no clock: every call passes the time. */
export function createWorld({
  cacheBytes,
  ...options
}: MarketModelOptions & { readonly cacheBytes: number }) {
  const market = createMarketModel(options);
  const writer = new JsonWriter(market.quirks);
  const cache = new PageCache(cacheBytes);
  const ticks = new TickHistory(market, writer);
  const bars = new BarHistory(market, writer);
  const exchangeTickers = new ExchangeTickers(market, writer, cache);
  const marketCaps = new MarketCaps(market, writer);
  const contracts = new Contracts(market);
  const tickers = new DerivativeTickers(market);
  return {
    ...market,
    writer,
    ticks,
    exchangeTickers,
    marketCaps,
    lookups: new Lookups(market, writer),
    indexTicks: new HistoryPages(ticks, "read:index-ticker", market, writer, cache),
    dailyBars: new HistoryPages(bars, "read:ohlcv", market, writer, cache),
    derivatives: new Derivatives(market, contracts, tickers, writer),
    oracle: new Oracle(market, { ticks, bars, exchangeTickers, marketCaps, contracts, tickers }),
  };
}
