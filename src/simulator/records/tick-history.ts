import { type IndexSeries, type SimulatedIndexType, TICK_VOLUME_DIGITS } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { History, type HistoryRecord, type RecordFigure } from "./history.ts";

export type IndexTickRecord = HistoryRecord<"price" | "volume" | "timestamp"> & { tickVolume?: string };

/** Intraday index ticks: one step is one refresh of the service. */
export class TickHistory extends History<IndexTickRecord> {
  readonly stepMs: number;
  readonly finalAfterMs = 0;
  readonly boundMs = 0;

  constructor(market: MarketModel) {
    super(market);
    this.stepMs = market.calendar.tickMs;
  }

  recordKind(type: SimulatedIndexType) {
    return `${type} tick` as const;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const { calendar } = this.market;
    const { first, end } = calendar.tickRange(series);
    return {
      oldest: Math.max(first, calendar.oldestTickInWindow(nowMs)),
      newest: Math.min(end - 1, calendar.newestTick(nowMs)),
    };
  }

  isPublished(series: IndexSeries, step: number, nowMs: number): boolean {
    return this.market.calendar.isPublished(series, step, nowMs);
  }

  protected content(series: IndexSeries, tick: number, nowMs: number) {
    const { calendar, indexValues } = this.market;
    const log = indexValues.logPriceAt(series, tick) + calendar.priceError(series, tick, nowMs);
    const figures: RecordFigure[] = [
      ["price", Math.exp(log), series.priceDigits],
      ["volume", indexValues.volumeAt(series, tick), series.volumeDigits],
    ];
    if (series.type === "LX")
      figures.push(["tickVolume", indexValues.tickVolumeAt(series, tick), TICK_VOLUME_DIGITS]);
    return { figures, moments: [["timestamp", tick * this.stepMs] as const] };
  }
}
