import { BarHistory } from "./bar-history.ts";
import { Contracts } from "./contracts.ts";
import { DerivativeTickers } from "./derivative-tickers.ts";
import { Derivatives } from "./derivatives.ts";
import { ExchangeTickers } from "./exchange-tickers.ts";
import { HistoryPages } from "./history-pages.ts";
import { IndexFigures } from "./index-figures.ts";
import { IndexTable } from "./index-series.ts";
import { Lookups } from "./lookups.ts";
import { MarketCaps } from "./market-caps.ts";
import { PageCache } from "./page-cache.ts";
import { PriceModel } from "./price-model.ts";
import type { Quirks } from "./quirks.ts";
import { RecordIds } from "./record-ids.ts";
import { TickCalendar } from "./tick-calendar.ts";
import { TickHistory } from "./tick-history.ts";
import { Truth } from "./truth.ts";
import { makeUniverse, type UniverseSize } from "./universe.ts";
import { WireWriter } from "./wire.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly size: UniverseSize;
  readonly tickMs: number;
  readonly quirks: Quirks;
  readonly cacheBytes: number;
}

export type World = ReturnType<typeof makeWorld>;

/** All that the service knows, and the desks that answer from it. Knows no clock: every question names its moment. */
export function makeWorld({ seed, size, tickMs, quirks, cacheBytes }: WorldOptions) {
  const universe = makeUniverse(seed, size, quirks.ids);
  const table = new IndexTable(universe);
  const paths = universe.assets.map(({ path }) => path);
  const figures = new IndexFigures(new PriceModel(seed, tickMs, paths), seed);
  const calendar = new TickCalendar(seed, tickMs, quirks);
  const ids = new RecordIds(seed, quirks.ids);
  const wire = new WireWriter(quirks);
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
    truth: new Truth({
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
