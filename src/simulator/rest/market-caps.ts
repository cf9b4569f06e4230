import { DAY_MS, plain, UtcWriter } from "../market/format.ts";
import type { IndexFigures, IndexSeries, IndexTable } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { Universe } from "../market/universe.ts";
import { Refusal } from "./errors.ts";
import type { WireWriter } from "./json-writer.ts";
import { QueryValues } from "./query-params.ts";

export interface PercentChange {
  readonly change24h: string | null;
  readonly change7d: string | null;
  readonly change30d: string | null;
}

export interface MarketCapRecord {
  readonly id: string;
  readonly assetId: string;
  readonly timestamp: string;
  readonly marketCapRank: number;
  readonly volumeRank: number;
  readonly price: string;
  readonly volume: string;
  readonly totalSupply: string;
  readonly freeFloatSupply: string;
  readonly marketCap: string;
  readonly totalMarketCap: string;
  readonly marketCapPercentChange?: PercentChange;
  readonly totalMarketCapPercentChange?: PercentChange;
  readonly volumePercentChange?: PercentChange;
  readonly pricePercentChange?: PercentChange;
}

const RANKING_MS = 300_000;
const periods = [1, 7, 30];

export interface MarketCapParts {
  readonly universe: Universe;
  readonly table: IndexTable;
  readonly figures: IndexFigures;
  readonly calendar: TickCalendar;
  readonly ids: RecordIds;
  readonly quirks: Quirks;
  readonly wire: WireWriter;
}

/** The ranking by market capitalisation: a new one every five minutes, from the GWA prices of that moment. */
export class MarketCaps {
  readonly #parts: MarketCapParts;
  readonly #utc: UtcWriter;

  constructor(parts: MarketCapParts) {
    this.#parts = parts;
    this.#utc = new UtcWriter(parts.quirks.fractionDigits);
  }

  answer(query: URLSearchParams, nowMs: number): string {
    const { quirks, universe, wire } = this.#parts;
    const values = new QueryValues("market-cap", query, quirks.ids);
    const assetId = values.id("assetId");
    const percentChange = values.oneOf("percentChange", ["true", "false"]) === "true";
    values.refuseComplaints();
    if (assetId !== undefined && !universe.assets.some(({ id }) => id === assetId))
      throw new Refusal(404, `No asset ${assetId}`);
    const ranking = this.ranking(nowMs, percentChange);
    const chosen = assetId === undefined ? ranking : ranking.filter((record) => record.assetId === assetId);
    return `{"content":${wire.list(chosen)}}`;
  }

  /** The ranking that is in force at this moment. */
  ranking(nowMs: number, percentChange: boolean): MarketCapRecord[] {
    const { table, figures, calendar, ids } = this.#parts;
    const number = Math.floor(nowMs / RANKING_MS);
    const tick = calendar.newest(number * RANKING_MS);
    const alive = (series: IndexSeries, at: number) => {
      const { first, end } = calendar.life(series);
      return at >= first && at < end;
    };
    const priced = table
      .ofType("GWA")
      .filter((series) => series.base.type === "CRYPTO" && alive(series, tick))
      .map((series) => {
        const price = figures.price(series, figures.logAt(series, tick));
        const volume = figures.volumeAt(series, tick);
        return { series, price, volume, cap: Number(price) * series.base.freeFloatSupply };
      });
    const byVolume = priced.toSorted(
      (one, other) => other.volume * Number(other.price) - one.volume * Number(one.price),
    );
    const volumeRanks = new Map(byVolume.map(({ series }, at) => [series, at + 1]));
    return priced
      .sort((one, other) => other.cap - one.cap || one.series.rank - other.series.rank)
      .map(({ series, price, cap }, at) => {
        const { base } = series;
        return {
          id: ids.id("market cap", base.ordinal, number),
          assetId: base.id,
          timestamp: this.#utc.write(number * RANKING_MS),
          marketCapRank: at + 1,
          volumeRank: volumeRanks.get(series) ?? 0,
          price,
          volume: figures.volume(series, tick),
          totalSupply: plain(base.totalSupply, 0),
          freeFloatSupply: plain(base.freeFloatSupply, 0),
          marketCap: plain(cap, 2),
          totalMarketCap: plain(Number(price) * base.totalSupply, 2),
          ...(percentChange ? this.#changes(series, tick) : {}),
        };
      });
  }

  #changes(series: IndexSeries, tick: number) {
    const { figures, calendar } = this.#parts;
    const { first } = calendar.life(series);
    const change = (figure: (at: number) => number): PercentChange => {
      const [change24h = null, change7d = null, change30d = null] = periods.map((days) => {
        const then = tick - Math.round((days * DAY_MS) / calendar.tickMs);
        return then < first ? null : plain((figure(tick) / figure(then) - 1) * 100, 4);
      });
      return { change24h, change7d, change30d };
    };
    // Supplies stand still here, so a capitalisation moves as its price does.
    const price = change((at) => Math.exp(figures.logAt(series, at)));
    return {
      marketCapPercentChange: price,
      totalMarketCapPercentChange: price,
      volumePercentChange: change((at) => figures.volumeAt(series, at)),
      pricePercentChange: price,
    };
  }
}
