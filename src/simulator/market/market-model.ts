import { createRowIds, parseRecordId } from "../../api-server/record-ids.ts";
import { DAY_MS } from "./format.ts";
import { createIndexTable, createIndexValues, type IndexSeries } from "./indexes.ts";
import { createPriceModel } from "./price-model.ts";
import { createUniverse, type FormatId, type UniverseSize } from "./universe.ts";

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

/** Ids that encode the position of their record: which series of its kind, and which step of the series. */
function createRecordIds(seed: number, format: FormatId) {
  const encode = (kind: string, key: number, number: number) => format(createRowIds(key, kind, seed)(number));
  /** Undefined if the id is not of this kind. */
  const decode = (kind: string, id: string) =>
    parseRecordId(id, ({ key, number }) => encode(kind, key, number));
  return { encode, decode };
}

const WINDOW_MS = 200 * DAY_MS;
const INTRADAY_START_MS = Date.UTC(2019, 5, 1);

/** Decides which index ticks exist, and when each becomes visible. */
export function createTickCalendar(tickMs: number) {
  const firstTickOfDay = (day: number) => Math.ceil((day * DAY_MS) / tickMs);
  /** All ticks of an index, inside the window or not: [first, end). */
  const tickRange = ({ firstDay, endDay }: IndexSeries) => ({
    first: firstTickOfDay(firstDay),
    end: firstTickOfDay(endDay),
  });
  return {
    ...{ tickMs, firstTickOfDay, tickRange },
    newestTick: (nowMs: number) => Math.floor(nowMs / tickMs),
    /** The oldest tick of the trailing 200-day window. */
    oldestTickInWindow: (nowMs: number) => Math.ceil(Math.max(nowMs - WINDOW_MS, INTRADAY_START_MS) / tickMs),
    /** Whether the index has a value at this tick. */
    isListed(series: IndexSeries, tick: number): boolean {
      const { first, end } = tickRange(series);
      return tick >= first && tick < end;
    },
    /** Whether the service has published the tick by `nowMs`. Ignores the window. */
    isPublished: (_series: IndexSeries, tick: number, nowMs: number) => tick * tickMs <= nowMs,
  };
}
