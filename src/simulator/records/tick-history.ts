import { formatDecimal, formatUtc } from "../market/format.ts";
import { type IndexSeries, TICK_VOLUME_DIGITS } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { History } from "./history.ts";

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
