import { DAY_MS, formatDecimal, formatUtc } from "../market/format.ts";
import type { DaySummary, IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { History } from "./history.ts";

type BarFigure = "open" | "high" | "low" | "close" | "volume" | "volumeUsd" | "vwap" | "twap";
type BarContent = Readonly<Record<BarFigure | "startTimestamp" | "endTimestamp", string>>;
type PriceSummary = Pick<DaySummary, "open" | "high" | "low" | "close" | "lastTick">;

const VOLUME_USD_DIGITS = 2;

/** End-of-day bars: one step is one day. Each bar is computed from the ticks of its day. */
export class BarHistory extends History<BarContent> {
  readonly kind = "daily bar";
  readonly stepMs = DAY_MS;
  readonly finalAfterMs = DAY_MS;
  readonly boundMs: number;
  readonly #endMs: number;

  constructor(market: MarketModel) {
    super(market);
    this.#endMs = market.quirks.barEnd === "midnight" ? DAY_MS : DAY_MS - 1;
    this.boundMs = market.quirks.ohlcvTimestamp === "start" ? 0 : this.#endMs;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const today = Math.floor(nowMs / DAY_MS);
    const newest = this.market.quirks.partialBar ? today : today - 1;
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, newest) };
  }

  isPublished(series: IndexSeries, day: number, nowMs: number): boolean {
    const isFinished = (day + 1) * DAY_MS <= nowMs;
    return isFinished || this.#summarize(series, day, nowMs) !== undefined;
  }

  content(series: IndexSeries, day: number, nowMs: number): BarContent | undefined {
    const summary = this.#summarize(series, day, nowMs);
    if (!summary) return undefined;
    const { indexValues, quirks } = this.market;
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
      endTimestamp: formatUtc(start + this.#endMs),
      ...(quirks.barTimestamp ? { timestamp: formatUtc(start) } : {}),
    };
  }

  #summarize(series: IndexSeries, day: number, nowMs: number): PriceSummary | undefined {
    const { calendar, indexValues } = this.market;
    const first = calendar.firstTickOfDay(day);
    const end = Math.min(calendar.firstTickOfDay(day + 1), calendar.newestTick(nowMs) + 1);
    if (end <= first || calendar.isClosed(first)) return undefined;
    const summary = indexValues.summarizeDay(series, day, end);
    if (!calendar.hasChangingTicks) return summary;
    const { highTick, lowTick, lastTick } = summary;
    // It holds if the four ticks that it names are published, and no tick of the day still has an error.
    const isPublishedAsIs =
      this.isSettled(day, nowMs) &&
      [first, highTick, lowTick, lastTick].every((tick) => calendar.isPublished(series, tick, nowMs));
    return isPublishedAsIs ? summary : this.#summarizePublished(series, first, end, nowMs);
  }

  /** Reads every tick that is published by `nowMs`, with its uncorrected error. */
  #summarizePublished(
    series: IndexSeries,
    first: number,
    end: number,
    nowMs: number,
  ): PriceSummary | undefined {
    const { calendar, indexValues } = this.market;
    let summary: PriceSummary | undefined;
    for (let tick = first; tick < end; tick++) {
      if (!calendar.isPublished(series, tick, nowMs)) continue;
      const log = indexValues.logPriceAt(series, tick) + calendar.priceError(series, tick, nowMs);
      const { open, high, low } = summary ?? { open: log, high: log, low: log };
      summary = { open, high: Math.max(high, log), low: Math.min(low, log), close: log, lastTick: tick };
    }
    return summary;
  }
}
