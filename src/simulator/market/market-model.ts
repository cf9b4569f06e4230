import { IndexTable, IndexValues } from "./indexes.ts";
import { PriceModel } from "./price-model.ts";
import type { Quirks } from "./quirks.ts";
import { RecordIds } from "./record-ids.ts";
import { TickCalendar } from "./tick-calendar.ts";
import { createUniverse, type UniverseSize } from "./universe.ts";

export interface MarketModelOptions {
  readonly seed: number;
  readonly size: UniverseSize;
  readonly tickMs: number;
  readonly quirks: Quirks;
}

export type MarketModel = Readonly<ReturnType<typeof createMarketModel>>;

/** Creates what every endpoint derives its records from. It has no clock: every call passes the time. */
export function createMarketModel({ seed, size, tickMs, quirks }: MarketModelOptions) {
  const universe = createUniverse(seed, size, quirks.ids);
  const priceParameters = universe.assets.map((asset) => asset.priceParameters);
  return {
    seed,
    quirks,
    universe,
    table: new IndexTable(universe, quirks, seed),
    indexValues: new IndexValues(new PriceModel(seed, tickMs, priceParameters), seed, tickMs),
    calendar: new TickCalendar(seed, tickMs, quirks),
    ids: new RecordIds(seed, quirks.ids),
  };
}
