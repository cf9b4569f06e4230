import { chooseFractionDigits, DAY_MS, formatDecimal } from "./format.ts";
import { hashNumbers, isAffected, mixBits } from "./hash.ts";
import type { Extremes } from "./price-extremes.ts";
import type { PriceModel } from "./price-model.ts";
import type { Quirks } from "./quirks.ts";
import type { SimulatedAsset, Universe } from "./universe.ts";

export const simulatedIndexTypes = ["GWA", "MWA", "LX"] as const;
export type SimulatedIndexType = (typeof simulatedIndexTypes)[number];

/** One index: the USD rate of an asset (GWA), the rate of a market (MWA), or a liquid index (LX). */
export interface IndexSeries {
  readonly type: SimulatedIndexType;
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
export class IndexTable {
  readonly all: readonly IndexSeries[];
  readonly #byType: Readonly<Record<SimulatedIndexType, readonly IndexSeries[]>>;
  readonly #byId: ReadonlyMap<string, IndexSeries>;

  constructor(
    { assets, markets, liquidIndexes }: Universe,
    { listed }: Pick<Quirks, "listed">,
    seed: number,
  ) {
    let rank = 0;
    const listedDay = Math.floor(Date.parse(listed.on) / DAY_MS);
    const list = (series: IndexSeries): IndexSeries =>
      isAffected(listed.perMille, seed, 64, series.rank)
        ? { ...series, firstDay: Math.min(series.endDay, Math.max(series.firstDay, listedDay)) }
        : series;
    const GWA = assets.map((asset) =>
      createSeries("GWA", asset.ordinal, rank++, asset.id, asset.symbol, asset, undefined, 1),
    );
    const MWA = markets.map(({ ordinal, id, base, quote, share }) => {
      const name = `${base.symbol}/${quote.symbol}`;
      return createSeries(
        "MWA",
        ordinal,
        rank++,
        id,
        name,
        base,
        quote.symbol === "USD" ? undefined : quote,
        share,
      );
    });
    const LX = liquidIndexes.map(({ ordinal, id, name, asset }) => {
      return createSeries("LX", ordinal, rank++, id, name, asset, undefined, 0.2);
    });
    this.#byType = { GWA: GWA.map(list), MWA: MWA.map(list), LX: LX.map(list) };
    this.all = Object.values(this.#byType).flat();
    this.#byId = new Map(this.all.map((series) => [series.id, series]));
  }

  ofType(type: SimulatedIndexType): readonly IndexSeries[] {
    return this.#byType[type];
  }

  byId(id: string): IndexSeries | undefined {
    return this.#byId.get(id);
  }
}

function createSeries(
  type: SimulatedIndexType,
  ordinal: number,
  rank: number,
  id: string,
  name: string,
  base: SimulatedAsset,
  quote: SimulatedAsset | undefined,
  share: number,
): IndexSeries {
  const dailyVolume = base.dailyVolume * share;
  const assets = quote ? [base, quote] : [base];
  return {
    type,
    ordinal,
    rank,
    id,
    name,
    base,
    quote,
    firstDay: Math.max(...assets.map(({ firstDay }) => firstDay)),
    endDay: Math.min(...assets.map(({ endDay }) => endDay)),
    priceDigits: chooseFractionDigits(base.priceParameters.usd / (quote?.priceParameters.usd ?? 1)),
    dailyVolume,
    volumeDigits: Math.min(8, chooseFractionDigits(dailyVolume)),
  };
}

const LX_DEVIATION_RANGE = 0.0001;
const BLOCK_TICKS = 4096;
const VOLUME_CELL_TICKS = 720;

/** The final prices and volumes of the indexes, by tick. */
export class IndexValues {
  readonly #model: PriceModel;
  readonly #seed: number;

  constructor(model: PriceModel, seed: number) {
    this.#model = model;
    this.#seed = seed;
  }

  /** GWA is the asset's USD price, MWA the ratio of two, LX the asset's price with a small deviation. */
  logPriceAt(series: IndexSeries, tick: number): number {
    const { base, quote } = series;
    const log = this.#model.logPriceAt(base.ordinal, tick);
    if (quote) return log - this.#model.logPriceAt(quote.ordinal, tick);
    return series.type === "LX" ? log + this.#lxDeviation(series, tick) : log;
  }

  usdLogPriceAt(asset: SimulatedAsset, tick: number): number {
    return this.#model.logPriceAt(asset.ordinal, tick);
  }

  /** `logPriceAt` for consecutive ticks. Reads whole blocks of the model: much cheaper for thousands of ticks. */
  logPrices(series: IndexSeries, fromTick: number, count: number): Float64Array {
    const found = new Float64Array(count);
    const { base, quote } = series;
    for (let done = 0; done < count; ) {
      const tick = fromTick + done;
      const offset = tick % BLOCK_TICKS;
      const run = Math.min(count - done, BLOCK_TICKS - offset);
      const logs = this.#model.block(base.ordinal, tick).subarray(offset, offset + run);
      found.set(logs, done);
      if (quote) {
        const quoteLogs = this.#model.block(quote.ordinal, tick);
        for (let at = 0; at < run; at++)
          found[done + at] = (found[done + at] as number) - (quoteLogs[offset + at] as number);
      }
      done += run;
    }
    if (series.type === "LX")
      for (let at = 0; at < count; at++)
        found[at] = (found[at] as number) + this.#lxDeviation(series, fromTick + at);
    return found;
  }

  /** The extremes of `logPriceAt` over [first, end). Reads every tick only for LX. */
  extremes(series: IndexSeries, first: number, end: number): Extremes {
    if (series.type === "LX") return findExtremes(this.logPrices(series, first, end - first));
    return this.#model.extremes(series.base.ordinal, series.quote?.ordinal, first, end);
  }

  formatPrice(series: IndexSeries, log: number): string {
    return formatDecimal(Math.exp(log), series.priceDigits);
  }

  /** The rolling 24-hour volume: drifts over hours, with a little noise per tick. */
  volumeAt(series: IndexSeries, tick: number): number {
    const salt = mixBits(this.#seed ^ Math.imul(series.base.ordinal + 1, 0x27d4eb2f));
    const cell = Math.floor(tick / VOLUME_CELL_TICKS);
    const fraction = tick / VOLUME_CELL_TICKS - cell;
    const left = mixBits(salt ^ Math.imul(cell, 0x165667b1));
    const right = mixBits(salt ^ Math.imul(cell + 1, 0x165667b1));
    const drift = (left + (right - left) * fraction) / 2 ** 32;
    const noise = mixBits(left ^ Math.imul(tick, 0x9e3779b1)) / 2 ** 32;
    return series.dailyVolume * (0.6 + 0.8 * drift + 0.01 * noise);
  }

  formatVolume(series: IndexSeries, tick: number): string {
    return formatDecimal(this.volumeAt(series, tick), series.volumeDigits);
  }

  /** The volume since the previous tick. Only LX records have it. */
  formatTickVolume(series: IndexSeries, tick: number): string {
    const part = (hashNumbers(this.#seed, 51, series.ordinal, tick) / 2 ** 32) * 2;
    return formatDecimal((this.volumeAt(series, tick) * part) / 2880, 8);
  }

  #lxDeviation(series: IndexSeries, tick: number): number {
    const hash = mixBits(
      this.#seed ^ Math.imul(series.ordinal + 7, 0x2c1b3c6d) ^ Math.imul(tick, 0x9e3779b1),
    );
    return (hash / 2 ** 32 - 0.5) * LX_DEVIATION_RANGE;
  }
}

export function findExtremes(logs: Float64Array): Extremes {
  let high = Number.NEGATIVE_INFINITY;
  let low = Number.POSITIVE_INFINITY;
  for (const log of logs) {
    if (log > high) high = log;
    if (log < low) low = log;
  }
  return { high, low };
}
