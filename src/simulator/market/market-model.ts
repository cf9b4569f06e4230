import { createIndexTable, createIndexValues } from "./indexes.ts";
import { createPriceModel } from "./price-model.ts";
import { createRecordIds, type FormatId } from "./record-ids.ts";
import { createTickCalendar } from "./tick-calendar.ts";
import { createUniverse, type UniverseSize } from "./universe.ts";

export interface MarketModelOptions {
  readonly seed: number;
  readonly size: UniverseSize;
  readonly tickMs: number;
  readonly formatId?: FormatId;
  /** Number of strikes that an exchange lists for each expiry of its options. */
  readonly optionStrikes?: number;
}

export type MarketModel = Readonly<ReturnType<typeof createMarketModel>>;

/** Creates what every endpoint derives its records from. It has no clock: every call passes the time. */
export function createMarketModel({
  seed,
  size,
  tickMs,
  formatId = (uuid) => uuid,
  optionStrikes = 9,
}: MarketModelOptions) {
  const universe = createUniverse(seed, size, formatId);
  const priceParameters = universe.assets.map((asset) => asset.priceParameters);
  return {
    seed,
    optionStrikes,
    universe,
    table: createIndexTable(universe),
    indexValues: createIndexValues(createPriceModel(seed, tickMs, priceParameters), seed, tickMs),
    calendar: createTickCalendar(tickMs),
    ids: createRecordIds(seed, formatId),
  };
}
