import { DAY_MS, formatDecimal, formatUtc } from "../market/format.ts";
import type { DaySummary, IndexSeries } from "../market/indexes.ts";
import { History } from "./history.ts";

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
