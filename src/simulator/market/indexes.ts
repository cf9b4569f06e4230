import type { SeriesFilter } from "../../api-server/source.ts";
import { chooseFractionDigits, DAY_MS } from "./format.ts";
import { hashNumbers, mixBits } from "./hash.ts";
import { MAX_DAY_LEVEL, type PriceModel } from "./price-model.ts";
import type { SimulatedAsset, Universe } from "./universe.ts";

/** One index: the USD rate of an asset (GWA), the rate of a market (MWA), or a liquid index (LX). */
export interface IndexSeries {
  readonly type: NonNullable<SeriesFilter["indexType"]>;
  /** Its position within its type. */
  readonly ordinal: number;
  /** Its position over all types: the order of records with the same timestamp. */
  readonly rank: number;
  readonly id: string;
  readonly name: string;
  readonly base: SimulatedAsset;
  /** Undefined: the dollar. */
  readonly quote: SimulatedAsset | undefined;
  /** Days since 1970 on which it has values: [firstDay, endDay). */
  readonly firstDay: number;
  readonly endDay: number;
  readonly priceDigits: number;
  readonly dailyVolume: number;
  readonly volumeDigits: number;
}

/** All indexes of a universe, in the order in which the service lists records with the same timestamp. */
export function createIndexTable({ assets, markets, liquidIndexes }: Universe) {
  let rank = 0;
  const list = (identity: SeriesIdentity): IndexSeries => createSeries(identity, rank++);
  const byType: Readonly<Record<IndexSeries["type"], readonly IndexSeries[]>> = {
    GWA: assets.map((base) => {
      const { ordinal, id, symbol: name } = base;
      return list({ type: "GWA", ordinal, id, name, base, quote: undefined, fraction: 1 });
    }),
    MWA: markets.map(({ ordinal, id, base, quote: asset, fraction }) => {
      const name = `${base.symbol}/${asset.symbol}`;
      const quote = asset.symbol === "USD" ? undefined : asset;
      return list({ type: "MWA", ordinal, id, name, base, quote, fraction });
    }),
    LX: liquidIndexes.map(({ ordinal, id, name, asset: base }) =>
      list({ type: "LX", ordinal, id, name, base, quote: undefined, fraction: 0.2 }),
    ),
  };
  const all = Object.values(byType).flat();
  return { all, byType, byId: new Map(all.map((series) => [series.id, series])) };
}

/** `fraction`: of the volume of the base asset. */
type SeriesIdentity = Pick<IndexSeries, "type" | "ordinal" | "id" | "name" | "base" | "quote"> & {
  readonly fraction: number;
};

function createSeries({ fraction, ...identity }: SeriesIdentity, rank: number): IndexSeries {
  const { base, quote } = identity;
  const dailyVolume = base.dailyVolume * fraction;
  const assets = quote ? [base, quote] : [base];
  return {
    ...identity,
    rank,
    firstDay: Math.max(...assets.map(({ firstDay }) => firstDay)),
    endDay: Math.min(...assets.map(({ endDay }) => endDay)),
    priceDigits: chooseFractionDigits(base.priceParameters.usd / (quote?.priceParameters.usd ?? 1)),
    dailyVolume,
    volumeDigits: Math.min(8, chooseFractionDigits(dailyVolume)),
  };
}

const LX_DEVIATION_RANGE = 0.0001;
export const TICK_VOLUME_DIGITS = 8;
const VOLUME_CELL_TICKS = 720;
const MAX_CACHED_DAYS = 4096;

/** The prices of one index at the anchors of a day, as logarithms. */
interface DayPath {
  readonly grid: DayGrid;
  readonly anchors: Float64Array;
}

/** The first, highest, lowest and last price of some ticks of one day, as logarithms. */
export interface DaySummary {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly lastTick: number;
}

/** The final prices and volumes of the indexes, by tick. */
export function createIndexValues(readAnchors: PriceModel, seed: number, tickMs: number) {
  const days = new Map<number, DayPath>();
  const dayOf = (tick: number) => Math.floor((tick * tickMs) / DAY_MS);

  function lxDeviation(ordinal: number, day: number, anchor: number): number {
    const cell = (day << MAX_DAY_LEVEL) + anchor;
    const hash = mixBits(seed ^ Math.imul(ordinal + 7, 0x2c1b3c6d) ^ Math.imul(cell, 0x9e3779b1));
    return (hash / 2 ** 32 - 0.5) * LX_DEVIATION_RANGE;
  }

  /** Only anchors may differ from series to series: `DayGrid` explains why. */
  function readDayPath({ type, ordinal, base, quote }: IndexSeries, day: number): DayPath {
    const grid = new DayGrid(day, tickMs);
    const anchors = readAnchors(base.ordinal, day, grid.segments);
    if (quote) {
      const quoteAnchors = readAnchors(quote.ordinal, day, grid.segments);
      return { grid, anchors: anchors.map((log, at) => log - (quoteAnchors[at] as number)) };
    }
    if (type !== "LX") return { grid, anchors };
    return { grid, anchors: anchors.map((log, at) => log + lxDeviation(ordinal, day, at)) };
  }

  function logAt({ grid, anchors }: DayPath, offset: number): number {
    const anchor = grid.anchorBefore(offset);
    const start = anchors[anchor] as number;
    if (offset === grid.anchorOffset(anchor)) return start;
    return start + ((anchors[anchor + 1] as number) - start) * grid.fractionAt(offset, seed);
  }

  /** GWA is the asset's USD price, MWA the ratio of two, LX the asset's price with a small deviation. */
  function logPriceAt(series: IndexSeries, tick: number): number {
    const day = dayOf(tick);
    const key = series.rank * 2 ** 20 + day;
    let path = days.get(key);
    if (!path) {
      path = readDayPath(series, day);
      if (days.size >= MAX_CACHED_DAYS) days.clear();
      days.set(key, path);
    }
    return logAt(path, tick - path.grid.first);
  }

  function usdLogPriceAt(asset: SimulatedAsset, tick: number): number {
    const grid = new DayGrid(dayOf(tick), tickMs);
    const anchors = readAnchors(asset.ordinal, grid.day, grid.segments);
    return logAt({ grid, anchors }, tick - grid.first);
  }

  /** Summarises the ticks of a day before `endTick`, which is after the first. Reads anchors, and few ticks besides. */
  function summarizeDay(series: IndexSeries, day: number, endTick: number): DaySummary {
    const path = readDayPath(series, day);
    const { anchors, grid } = path;
    const last = Math.min(grid.count, endTick - grid.first) - 1;
    const lastAnchor = grid.anchorBefore(last);
    const logs = [...anchors.subarray(0, lastAnchor + 1)];
    for (let offset = grid.anchorOffset(lastAnchor) + 1; offset <= last; offset++)
      logs.push(logAt(path, offset));
    return {
      open: logs[0] as number,
      high: Math.max(...logs),
      low: Math.min(...logs),
      close: logs.at(-1) as number,
      lastTick: grid.first + last,
    };
  }

  /** The rolling 24-hour volume: drifts over hours, with a little noise per tick. */
  function volumeAt(series: IndexSeries, tick: number): number {
    const salt = mixBits(seed ^ Math.imul(series.base.ordinal + 1, 0x27d4eb2f));
    const cell = Math.floor(tick / VOLUME_CELL_TICKS);
    const fraction = tick / VOLUME_CELL_TICKS - cell;
    const left = mixBits(salt ^ Math.imul(cell, 0x165667b1));
    const right = mixBits(salt ^ Math.imul(cell + 1, 0x165667b1));
    const drift = (left + (right - left) * fraction) / 2 ** 32;
    const noise = mixBits(left ^ Math.imul(tick, 0x9e3779b1)) / 2 ** 32;
    return series.dailyVolume * (0.6 + 0.8 * drift + 0.01 * noise);
  }

  /** The volume since the previous tick. Only LX records have it. */
  function tickVolumeAt(series: IndexSeries, tick: number): number {
    const part = (hashNumbers(seed, 51, series.ordinal, tick) / 2 ** 32) * 2;
    return (volumeAt(series, tick) * part) / 2880;
  }

  return { logPriceAt, usdLogPriceAt, summarizeDay, volumeAt, tickVolumeAt };
}

/** The ticks of a day, divided into segments. The first and the last tick of each segment are anchors. */
class DayGrid {
  readonly day: number;
  /** The first tick of the day. */
  readonly first: number;
  readonly count: number;
  /** A power of two, at most the number of ticks after the first, so that every anchor has a tick of its own. */
  readonly segments: number;

  constructor(day: number, tickMs: number) {
    this.day = day;
    this.first = Math.ceil((day * DAY_MS) / tickMs);
    this.count = Math.ceil(((day + 1) * DAY_MS) / tickMs) - this.first;
    this.segments = this.count < 2 ? 0 : 1 << Math.min(MAX_DAY_LEVEL, Math.floor(Math.log2(this.count - 1)));
  }

  /** The tick of an anchor, counted from the first. The last anchor is the last tick of the day. */
  anchorOffset(anchor: number): number {
    return this.segments === 0 ? 0 : Math.floor((anchor * (this.count - 1)) / this.segments);
  }

  /** The newest anchor at or before a tick: the segment that the tick is in begins there. */
  anchorBefore(offset: number): number {
    return this.segments === 0 ? 0 : Math.ceil(((offset + 1) * this.segments) / (this.count - 1)) - 1;
  }

  /**
   * How far on the way from its anchor to the next one a tick lies, above 0 and below 1. It is the same for all assets: so the
   * ratio of two prices also lies between its anchors, and the extremes of every index in a day are those of anchors.
   */
  fractionAt(offset: number, salt: number): number {
    const anchor = this.anchorBefore(offset);
    const start = this.anchorOffset(anchor);
    const drift = (offset - start) / (this.anchorOffset(anchor + 1) - start);
    const noise = mixBits(salt ^ Math.imul(this.first + offset, 0x9e3779b1)) / 2 ** 32;
    return (3 * drift + noise) / 4;
  }
}
