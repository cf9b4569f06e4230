import { DAY_MS, formatDecimal, UtcFormatter } from "../market/format.ts";
import type { IndexSeries, SimulatedIndexType } from "../market/indexes.ts";
import { findExtremes, type IndexValues } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { History, PageRecords } from "./history.ts";
import type { JsonWriter } from "./json-writer.ts";

export interface DailyBarRecord {
  readonly id: string;
  readonly indexId: string;
  readonly indexType: SimulatedIndexType;
  readonly open: string;
  readonly high: string;
  readonly low: string;
  readonly close: string;
  readonly volume: string;
  readonly volumeUsd: string;
  readonly vwap: string;
  readonly twap: string;
  readonly startTimestamp: string;
  readonly endTimestamp: string;
  readonly timestamp?: string;
}

/** What the ticks of one day come to; prices as logarithms. */
interface DaySummary {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly lastTick: number;
}

const MAX_CACHED_DAYS = 200_000;

/** End-of-day bars: one step is one day. Every bar is made from the ticks of its day. */
export class BarHistory implements History {
  readonly name = "ohlcv";
  readonly hasFixedEnd = true;
  readonly #calendar: TickCalendar;
  readonly #figures: IndexValues;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #wire: JsonWriter;
  readonly #utc: UtcFormatter;
  readonly #summaries = new Map<number, DaySummary | undefined>();

  constructor(
    calendar: TickCalendar,
    figures: IndexValues,
    ids: RecordIds,
    quirks: Quirks,
    wire: JsonWriter,
  ) {
    this.#calendar = calendar;
    this.#figures = figures;
    this.#ids = ids;
    this.#quirks = quirks;
    this.#wire = wire;
    this.#utc = new UtcFormatter(quirks.fractionDigits);
  }

  recordKind(type: SimulatedIndexType) {
    return `${type} bar` as const;
  }

  lastStepUpTo(ms: number): number {
    const compared = this.#quirks.ohlcvTimestamp === "start" ? 0 : this.#endOffset();
    const day = Math.floor((ms - compared) / DAY_MS);
    const exactly = day * DAY_MS + compared === ms;
    return exactly && this.#quirks.upperBound === "exclusive" ? day - 1 : day;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const today = Math.floor(nowMs / DAY_MS);
    const newest = this.#quirks.partialBar ? today : today - 1;
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, newest) };
  }

  isPublished(series: IndexSeries, day: number, nowMs: number): boolean {
    const finished = (day + 1) * DAY_MS <= nowMs;
    return finished || this.#getSummary(series, day, nowMs) !== undefined;
  }

  isSettled(day: number, nowMs: number): boolean {
    return (day + 1) * DAY_MS + this.#calendar.settleDelayMs <= nowMs;
  }

  isReachable(): boolean {
    return true;
  }

  record(series: IndexSeries, day: number, nowMs: number): DailyBarRecord | undefined {
    const summary = this.#getSummary(series, day, nowMs);
    if (!summary) return undefined;
    const price = (log: number) => this.#figures.formatPrice(series, log);
    const volume = this.#figures.volumeAt(series, summary.lastTick);
    const quoteUsd = series.quote ? Math.exp(this.#figures.usdLogPriceAt(series.quote, summary.lastTick)) : 1;
    // Near enough to the day's averages, and always between its extremes.
    const twap = (summary.open + summary.high + summary.low + summary.close) / 4;
    const vwap = (twap * 3 + summary.close) / 4;
    return {
      id: this.#ids.encode(this.recordKind(series.type), series.ordinal, day),
      indexId: series.id,
      indexType: series.type,
      open: price(summary.open),
      high: price(summary.high),
      low: price(summary.low),
      close: price(summary.close),
      volume: this.#figures.formatVolume(series, summary.lastTick),
      volumeUsd: formatDecimal(volume * Math.exp(vwap) * quoteUsd, 2),
      vwap: price(vwap),
      twap: price(twap),
      startTimestamp: this.#utc.format(day * DAY_MS),
      endTimestamp: this.#utc.format(day * DAY_MS + this.#endOffset()),
      ...(this.#quirks.barTimestamp ? { timestamp: this.#utc.format(day * DAY_MS) } : {}),
    };
  }

  render({ series, steps }: PageRecords, nowMs: number): string {
    const texts = steps.flatMap((day, at) => {
      const record = this.record(series[at] as IndexSeries, day, nowMs);
      return record ? [this.#wire.formatRecord(record)] : [];
    });
    return texts.join(",");
  }

  #endOffset(): number {
    return this.#quirks.barEnd === "midnight" ? DAY_MS : DAY_MS - 1;
  }

  #getSummary(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    if (!this.isSettled(day, nowMs)) return this.#computeSummary(series, day, nowMs);
    const key = series.rank * 2 ** 20 + day;
    if (this.#summaries.has(key)) return this.#summaries.get(key);
    if (this.#summaries.size >= MAX_CACHED_DAYS) this.#summaries.clear();
    const summary = this.#computeSummary(series, day, nowMs);
    this.#summaries.set(key, summary);
    return summary;
  }

  #computeSummary(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    const first = this.#calendar.firstTickOfDay(day);
    const end = Math.min(this.#calendar.firstTickOfDay(day + 1), this.#calendar.newestTick(nowMs) + 1);
    if (end <= first) return undefined;
    if (!this.#calendar.hasChangingTicks) {
      const open = this.#figures.logPriceAt(series, first);
      const close = this.#figures.logPriceAt(series, end - 1);
      return { open, close, ...this.#figures.extremes(series, first, end), lastTick: end - 1 };
    }
    const { logs, lastTick } = this.#publishedLogPrices(series, first, end, nowMs);
    const open = logs[0];
    const close = logs.at(-1);
    if (open === undefined || close === undefined) return undefined;
    return { open, close, ...findExtremes(logs), lastTick };
  }

  /** What is known now of a run of ticks, as it is known now. */
  #publishedLogPrices(series: IndexSeries, first: number, end: number, nowMs: number) {
    const logs = this.#figures.logPrices(series, first, end - first);
    const found: number[] = [];
    let lastTick = first;
    for (let at = 0; at < logs.length; at++) {
      if (!this.#calendar.isPublished(series, first + at, nowMs)) continue;
      found.push((logs[at] as number) + this.#calendar.priceError(series, first + at, nowMs));
      lastTick = first + at;
    }
    return { logs: Float64Array.from(found), lastTick };
  }
}
