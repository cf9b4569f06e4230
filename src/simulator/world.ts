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

export interface WorldOptions {
  readonly seed: number;
  readonly size: UniverseSize;
  readonly tickMs: number;
  readonly quirks: Quirks;
  readonly cacheBytes: number;
}

export type World = ReturnType<typeof createWorld>;

/** All that the service knows, and the desks that answer from it. Knows no clock: every question names its moment. */
export function createWorld({ seed, size, tickMs, quirks, cacheBytes }: WorldOptions) {
  const universe = createUniverse(seed, size, quirks.ids);
  const table = new IndexTable(universe);
  const paths = universe.assets.map(({ priceParameters: path }) => path);
  const figures = new IndexValues(new PriceModel(seed, tickMs, paths), seed);
  const calendar = new TickCalendar(seed, tickMs, quirks);
  const ids = new RecordIds(seed, quirks.ids);
  const wire = new JsonWriter(quirks);
  const cache = new PageCache(cacheBytes);
  const parts = { seed, universe, table, figures, calendar, ids, quirks, wire, cache };

  const ticks = new TickHistory(calendar, figures, ids, quirks, wire);
  const bars = new BarHistory(calendar, figures, ids, quirks, wire);
  const exchangeTickers = new ExchangeTickers(parts);
  const marketCaps = new MarketCaps(parts);
  const contracts = new Contracts(parts);
  const tickers = new DerivativeTickers({ ...parts, fractionDigits: quirks.fractionDigits });
  return {
    universe,
    table,
    calendar,
    wire,
    ticks,
    exchangeTickers,
    marketCaps,
    lookups: new Lookups(universe, quirks, wire),
    indexTicks: new HistoryPages(ticks, "read:index-ticker", parts),
    dailyBars: new HistoryPages(bars, "read:ohlcv", parts),
    derivatives: new Derivatives({ universe, contracts, tickers, calendar, quirks, wire }),
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
