import type { HistoryRecord, HistorySeries } from "../../api-server/source.ts";
import { DAY_MS, formatDecimal, formatUtc } from "../market/format.ts";
import { type DaySummary, type IndexSeries, TICK_VOLUME_DIGITS } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";

/** `Content`: what a record has beside its id and its index. */
type SimulatedRecord<Content> = { id: string; indexId: string; indexType: IndexSeries["type"] } & Content;

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<Content extends object = object> {
  abstract readonly kind: string;
  abstract readonly stepMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  readonly boundMs: number = 0;
  protected readonly market: MarketModel;

  constructor(market: MarketModel) {
    this.market = market;
  }

  /** The steps that can have records now, both inclusive. */
  abstract stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether a record within `stepRange` may be seen by `nowMs`. */
  isPublished(_series: IndexSeries, _step: number, _nowMs: number): boolean {
    return true;
  }

  /** A record without its id and its index. */
  abstract content(series: IndexSeries, step: number, nowMs: number): Content | undefined;

  record(series: IndexSeries, step: number, nowMs: number): SimulatedRecord<Content> | undefined {
    const content = this.content(series, step, nowMs);
    const id = this.#idAt(series, step * this.stepMs * 1000);
    return content && { id, indexId: series.id, indexType: series.type, ...content };
  }

  /** An index as the server reads it at `nowMs`. */
  open(series: IndexSeries, nowMs: number): HistorySeries {
    const stepMicros = this.stepMs * 1000;
    const read = (from: number, to: number, limit: number) => {
      const { oldest, newest } = this.stepRange(series, nowMs);
      const first = Math.max(oldest, Math.ceil(from / stepMicros));
      const records: HistoryRecord[] = [];
      for (let step = Math.min(newest, Math.ceil(to / stepMicros) - 1); step >= first; step--) {
        if (records.length === limit) break;
        const record = this.isPublished(series, step, nowMs) && this.record(series, step, nowMs);
        if (record) records.push({ ts: step * stepMicros, text: JSON.stringify(record) });
      }
      return records;
    };
    return {
      indexType: series.type,
      rank: series.rank,
      isEmpty: series.firstDay >= series.endDay,
      bound: this.boundMs * 1000,
      read,
      latest: () => read(0, Number.POSITIVE_INFINITY, 1)[0],
      cursorAt: (ts) => this.#idAt(series, ts),
    };
  }

  #idAt({ rank }: IndexSeries, ts: number): string {
    return this.market.ids.encode(this.kind, rank, ts);
  }
}

export interface TickContent {
  readonly price: string;
  readonly volume: string;
  readonly tickVolume?: string;
  readonly timestamp: string;
}

/** Intraday index ticks: one step is one refresh of the service. */
export class TickHistory extends History<TickContent> {
  readonly kind = "index tick";
  readonly stepMs: number;

  constructor(market: MarketModel) {
    super(market);
    this.stepMs = market.calendar.tickMs;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const { calendar } = this.market;
    const { first, end } = calendar.tickRange(series);
    return {
      oldest: Math.max(first, calendar.oldestTickInWindow(nowMs)),
      newest: Math.min(end - 1, calendar.newestTick(nowMs)),
    };
  }

  override isPublished(series: IndexSeries, step: number, nowMs: number): boolean {
    return this.market.calendar.isPublished(series, step, nowMs);
  }

  content(series: IndexSeries, tick: number, _nowMs: number): TickContent {
    const { indexValues } = this.market;
    const price = formatDecimal(Math.exp(indexValues.logPriceAt(series, tick)), series.priceDigits);
    const volume = formatDecimal(indexValues.volumeAt(series, tick), series.volumeDigits);
    const timestamp = formatUtc(tick * this.stepMs);
    if (series.type !== "LX") return { price, volume, timestamp };
    const tickVolume = formatDecimal(indexValues.tickVolumeAt(series, tick), TICK_VOLUME_DIGITS);
    return { price, volume, tickVolume, timestamp };
  }
}

type BarFigure = "open" | "high" | "low" | "close" | "volume" | "volumeUsd" | "vwap" | "twap";
export type BarContent = Readonly<Record<BarFigure | "startTimestamp" | "endTimestamp", string>>;

const VOLUME_USD_DIGITS = 2;

/** End-of-day bars: one step is one day. Each bar is computed from the ticks of its day. */
export class BarHistory extends History<BarContent> {
  readonly kind = "daily bar";
  readonly stepMs = DAY_MS;

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, Math.floor(nowMs / DAY_MS)) };
  }

  content(series: IndexSeries, day: number, nowMs: number): BarContent | undefined {
    const summary = this.summarize(series, day, nowMs);
    if (!summary) return undefined;
    const { indexValues } = this.market;
    const { open, high, low, close, lastTick } = summary;
    // Approximations, always between low and high: only ticks of LX have a volume of their own.
    const twap = [open, high, low, close].reduce((sum, log) => sum + Math.exp(log), 0) / 4;
    const vwap = (twap * 3 + Math.exp(close)) / 4;
    const volume = indexValues.volumeAt(series, lastTick);
    const quoteLog = series.quote ? indexValues.usdLogPriceAt(series.quote, lastTick) : 0;
    const formatPrice = (price: number) => formatDecimal(price, series.priceDigits);
    const start = day * DAY_MS;
    return {
      open: formatPrice(Math.exp(open)),
      high: formatPrice(Math.exp(high)),
      low: formatPrice(Math.exp(low)),
      close: formatPrice(Math.exp(close)),
      volume: formatDecimal(volume, series.volumeDigits),
      volumeUsd: formatDecimal(volume * vwap * Math.exp(quoteLog), VOLUME_USD_DIGITS),
      vwap: formatPrice(vwap),
      twap: formatPrice(twap),
      startTimestamp: formatUtc(start),
      endTimestamp: formatUtc(start + DAY_MS - 1),
    };
  }

  /** The ticks of a day that are published by `nowMs`; undefined if none is. */
  protected summarize(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    const { calendar, indexValues } = this.market;
    const end = Math.min(calendar.firstTickOfDay(day + 1), calendar.newestTick(nowMs) + 1);
    return end <= calendar.firstTickOfDay(day) ? undefined : indexValues.summarizeDay(series, day, end);
  }
}
