import { Contracts } from "./market/contracts.ts";
import { IndexTable, IndexValues } from "./market/indexes.ts";
import { PriceModel } from "./market/price-model.ts";
import type { Quirks } from "./market/quirks.ts";
import { RecordIds } from "./market/record-ids.ts";
import { TickCalendar } from "./market/tick-calendar.ts";
import { createUniverse, type UniverseSize } from "./market/universe.ts";
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

interface WorldOptions {
  readonly seed: number;
  readonly size: UniverseSize;
  readonly tickMs: number;
  readonly quirks: Quirks;
  readonly cacheBytes: number;
}

export type World = ReturnType<typeof createWorld>;

/** Creates the data of the simulated service and its endpoints. They have no clock: every call passes the time. */
export function createWorld({ seed, size, tickMs, quirks, cacheBytes }: WorldOptions) {
  const universe = createUniverse(seed, size, quirks.ids);
  const table = new IndexTable(universe, quirks, seed);
  const priceParameters = universe.assets.map((asset) => asset.priceParameters);
  const indexValues = new IndexValues(new PriceModel(seed, tickMs, priceParameters), seed, tickMs);
  const calendar = new TickCalendar(seed, tickMs, quirks);
  const ids = new RecordIds(seed, quirks.ids);
  const writer = new JsonWriter(quirks);
  const cache = new PageCache(cacheBytes);
  const dependencies = { seed, universe, table, indexValues, calendar, ids, quirks, writer, cache };

  const ticks = new TickHistory(calendar, indexValues, ids, quirks, writer);
  const bars = new BarHistory(calendar, indexValues, ids, quirks, writer);
  const exchangeTickers = new ExchangeTickers(dependencies);
  const marketCaps = new MarketCaps(dependencies);
  const contracts = new Contracts(dependencies);
  const tickers = new DerivativeTickers({ ...dependencies, fractionDigits: quirks.fractionDigits });
  return {
    quirks,
    universe,
    table,
    calendar,
    writer,
    ticks,
    exchangeTickers,
    marketCaps,
    lookups: new Lookups(universe, quirks, writer),
    indexTicks: new HistoryPages(ticks, "read:index-ticker", dependencies),
    dailyBars: new HistoryPages(bars, "read:ohlcv", dependencies),
    derivatives: new Derivatives({ universe, contracts, tickers, calendar, quirks, writer }),
    oracle: new Oracle({
      universe,
      table,
      calendar,
      ticks,
      bars,
      exchangeTickers,
      marketCaps,
      contracts,
      tickers,
    }),
  };
}
