import { fractionDigitsFor } from "./decimal-text.ts";
import type { SimulatedAsset, Universe } from "./universe.ts";

export const indexTypes = ["GWA", "MWA", "LX"] as const;
export type IndexType = (typeof indexTypes)[number];

/** One index: an asset's USD rate, a market's rate, or a liquid index. */
export interface IndexSeries {
  readonly type: IndexType;
  /** Its number within its type. */
  readonly ordinal: number;
  /** Its place among the records of one moment, over all types. */
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

/** All indexes of a universe, in the order in which records of one moment are listed. */
export class IndexTable {
  readonly all: readonly IndexSeries[];
  readonly #byType: Readonly<Record<IndexType, readonly IndexSeries[]>>;
  readonly #byId: ReadonlyMap<string, IndexSeries>;

  constructor({ assets, markets, liquidIndexes }: Universe) {
    let rank = 0;
    const GWA = assets.map((asset) =>
      seriesOf("GWA", asset.ordinal, rank++, asset.id, asset.symbol, asset, undefined, 1),
    );
    const MWA = markets.map(({ ordinal, id, base, quote, share }) => {
      const name = `${base.symbol}/${quote.symbol}`;
      return seriesOf(
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
      return seriesOf("LX", ordinal, rank++, id, name, asset, undefined, 0.2);
    });
    this.#byType = { GWA, MWA, LX };
    this.all = [...GWA, ...MWA, ...LX];
    this.#byId = new Map(this.all.map((series) => [series.id, series]));
  }

  ofType(type: IndexType): readonly IndexSeries[] {
    return this.#byType[type];
  }

  byId(id: string): IndexSeries | undefined {
    return this.#byId.get(id);
  }
}

function seriesOf(
  type: IndexType,
  ordinal: number,
  rank: number,
  id: string,
  name: string,
  base: SimulatedAsset,
  quote: SimulatedAsset | undefined,
  share: number,
): IndexSeries {
  const dailyVolume = base.dailyVolume * share;
  const lives = quote ? [base, quote] : [base];
  return {
    type,
    ordinal,
    rank,
    id,
    name,
    base,
    quote,
    firstDay: Math.max(...lives.map(({ firstDay }) => firstDay)),
    endDay: Math.min(...lives.map(({ endDay }) => endDay)),
    priceDigits: fractionDigitsFor(base.path.usd / (quote?.path.usd ?? 1)),
    dailyVolume,
    volumeDigits: Math.min(8, fractionDigitsFor(dailyVolume)),
  };
}
