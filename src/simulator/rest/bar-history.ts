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

/** The summary of the ticks of one day; prices are logarithms. */
interface DaySummary {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly lastTick: number;
}

const MAX_CACHED_DAYS = 200_000;

/** End-of-day bars: one step is one day. Each bar is computed from the ticks of its day. */
export class BarHistory implements History {
  readonly name = "ohlcv";
  readonly hasFixedEnd = true;
  readonly #calendar: TickCalendar;
  readonly #indexValues: IndexValues;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #writer: JsonWriter;
  readonly #utc: UtcFormatter;
  readonly #summaries = new Map<number, DaySummary | undefined>();

  constructor(
    calendar: TickCalendar,
    indexValues: IndexValues,
    ids: RecordIds,
    quirks: Quirks,
    writer: JsonWriter,
  ) {
    this.#calendar = calendar;
    this.#indexValues = indexValues;
    this.#ids = ids;
    this.#quirks = quirks;
    this.#writer = writer;
    this.#utc = new UtcFormatter(quirks.fractionDigits);
  }

  recordKind(type: SimulatedIndexType) {
    return `${type} bar` as const;
  }

  lastStepUpTo(ms: number): number {
    const offset = this.#quirks.ohlcvTimestamp === "start" ? 0 : this.#endOffset();
    const day = Math.floor((ms - offset) / DAY_MS);
    const isExact = day * DAY_MS + offset === ms;
    return isExact && this.#quirks.upperBound === "exclusive" ? day - 1 : day;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const today = Math.floor(nowMs / DAY_MS);
    const newest = this.#quirks.partialBar ? today : today - 1;
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, newest) };
  }

  isPublished(series: IndexSeries, day: number, nowMs: number): boolean {
    const isFinished = (day + 1) * DAY_MS <= nowMs;
    return isFinished || this.#getSummary(series, day, nowMs) !== undefined;
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
    const price = (log: number) => this.#indexValues.formatPrice(series, log);
    const volume = this.#indexValues.volumeAt(series, summary.lastTick);
    const quoteUsd = series.quote
      ? Math.exp(this.#indexValues.usdLogPriceAt(series.quote, summary.lastTick))
      : 1;
    // Approximations of the averages, always between low and high.
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
      volume: this.#indexValues.formatVolume(series, summary.lastTick),
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
      return record ? [this.#writer.formatRecord(record)] : [];
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
      const open = this.#indexValues.logPriceAt(series, first);
      const close = this.#indexValues.logPriceAt(series, end - 1);
      return { open, close, ...this.#indexValues.extremes(series, first, end), lastTick: end - 1 };
    }
    const { logs, lastTick } = this.#publishedLogPrices(series, first, end, nowMs);
    const open = logs[0];
    const close = logs.at(-1);
    if (open === undefined || close === undefined) return undefined;
    return { open, close, ...findExtremes(logs), lastTick };
  }

  /** The prices of the ticks that are published by `nowMs`, with their uncorrected errors. */
  #publishedLogPrices(series: IndexSeries, first: number, end: number, nowMs: number) {
    const logs = this.#indexValues.logPrices(series, first, end - first);
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
