import { DAY_MS, formatDecimal } from "../market/format.ts";
import type { DaySummary, IndexSeries, SimulatedIndexType } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { scrambleStep } from "../market/record-ids.ts";
import type { History, PageRecords } from "./history.ts";
import type { JsonWriter } from "./json-writer.ts";
import { createAffixes, type PageWriter, type RecordAffixes, writeFigure } from "./page-writer.ts";

export type DailyBarRecord = NonNullable<ReturnType<BarHistory["record"]>>;

type PriceSummary = Pick<DaySummary, "open" | "high" | "low" | "close" | "lastTick">;

const VOLUME_USD_DIGITS = 2;
/** More than a bar has without its ids. */
const MAX_BAR_BYTES = 1024;

/** End-of-day bars: one step is one day. Each bar is computed from the ticks of its day. */
export class BarHistory implements History {
  readonly name = "ohlcv";
  readonly hasFixedEnd = true;
  readonly #market: MarketModel;
  readonly #jsonWriter: JsonWriter;

  constructor(market: MarketModel, jsonWriter: JsonWriter) {
    this.#market = market;
    this.#jsonWriter = jsonWriter;
  }

  recordKind(type: SimulatedIndexType) {
    return `${type} bar` as const;
  }

  lastStepUpTo(ms: number): number {
    const offset = this.#market.quirks.ohlcvTimestamp === "start" ? 0 : this.#endOffset();
    const day = Math.floor((ms - offset) / DAY_MS);
    const isExact = day * DAY_MS + offset === ms;
    return isExact && this.#market.quirks.upperBound === "exclusive" ? day - 1 : day;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const today = Math.floor(nowMs / DAY_MS);
    const newest = this.#market.quirks.partialBar ? today : today - 1;
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, newest) };
  }

  isPublished(series: IndexSeries, day: number, nowMs: number): boolean {
    const isFinished = (day + 1) * DAY_MS <= nowMs;
    return isFinished || this.#summarize(series, day, nowMs) !== undefined;
  }

  isSettled(day: number, nowMs: number): boolean {
    return (day + 1) * DAY_MS + this.#market.calendar.settleDelayMs <= nowMs;
  }

  isReachable(): boolean {
    return true;
  }

  record(series: IndexSeries, day: number, nowMs: number) {
    const summary = this.#summarize(series, day, nowMs);
    if (!summary) return undefined;
    const { prices, volume, volumeUsd } = this.#computeFigures(series, summary);
    const [open = "", high = "", low = "", close = "", vwap = "", twap = ""] = prices.map((price) =>
      formatDecimal(price, series.priceDigits),
    );
    return {
      id: this.#market.ids.encode(this.recordKind(series.type), series.ordinal, day),
      indexId: series.id,
      indexType: series.type,
      open,
      high,
      low,
      close,
      volume: formatDecimal(volume, series.volumeDigits),
      volumeUsd: formatDecimal(volumeUsd, VOLUME_USD_DIGITS),
      vwap,
      twap,
      startTimestamp: this.#market.utc.format(day * DAY_MS),
      endTimestamp: this.#market.utc.format(day * DAY_MS + this.#endOffset()),
      ...(this.#market.quirks.barTimestamp ? { timestamp: this.#market.utc.format(day * DAY_MS) } : {}),
    };
  }

  write({ series: seriesList, steps }: PageRecords, nowMs: number, writer: PageWriter): void {
    const { extraProperties, reorderedProperties, decimals } = this.#market.quirks;
    const isPlain = !extraProperties && !reorderedProperties;
    const quote = decimals === "string" ? '"' : "";
    let affixes: RecordAffixes | undefined;
    let isFirst = true;
    for (let at = 0; at < steps.length; at++) {
      const series = seriesList[at] as IndexSeries;
      const day = steps[at] as number;
      const summary = this.#summarize(series, day, nowMs);
      if (!summary) continue;
      if (series !== seriesList[at - 1] || !affixes)
        affixes = createAffixes(this.#market.ids, this.recordKind(series.type), series);
      writer.reserve(MAX_BAR_BYTES + affixes.bytes);
      if (!isFirst) writer.writeAscii(",");
      isFirst = false;
      if (isPlain) this.#writePlain(writer, affixes, quote, series, day, summary);
      else writer.writeText(this.#jsonWriter.formatRecord(this.record(series, day, nowMs) ?? {}));
    }
  }

  /** Writes the same text as JsonWriter would. */
  #writePlain(
    writer: PageWriter,
    { start, afterId }: RecordAffixes,
    quote: string,
    series: IndexSeries,
    day: number,
    summary: PriceSummary,
  ): void {
    const { prices, volume, volumeUsd } = this.#computeFigures(series, summary);
    const { priceDigits, volumeDigits } = series;
    const [open = 0, high = 0, low = 0, close = 0, vwap = 0, twap = 0] = prices;
    const startText = this.#market.utc.format(day * DAY_MS);
    writer.writeBytes(start);
    writer.writeAscii(scrambleStep(day));
    writer.writeBytes(afterId);
    writeFigure(writer, ',"open":', open, priceDigits, quote);
    writeFigure(writer, ',"high":', high, priceDigits, quote);
    writeFigure(writer, ',"low":', low, priceDigits, quote);
    writeFigure(writer, ',"close":', close, priceDigits, quote);
    writeFigure(writer, ',"volume":', volume, volumeDigits, quote);
    writeFigure(writer, ',"volumeUsd":', volumeUsd, VOLUME_USD_DIGITS, quote);
    writeFigure(writer, ',"vwap":', vwap, priceDigits, quote);
    writeFigure(writer, ',"twap":', twap, priceDigits, quote);
    writer.writeAscii(',"startTimestamp":"');
    writer.writeAscii(startText);
    writer.writeAscii('","endTimestamp":"');
    writer.writeAscii(this.#market.utc.format(day * DAY_MS + this.#endOffset()));
    if (this.#market.quirks.barTimestamp) {
      writer.writeAscii('","timestamp":"');
      writer.writeAscii(startText);
    }
    writer.writeAscii('"}');
  }

  /** Prices are in the order open, high, low, close, vwap, twap. */
  #computeFigures(series: IndexSeries, { open, high, low, close, lastTick }: PriceSummary) {
    // Approximations of the averages, always between low and high.
    const twap = (open + high + low + close) / 4;
    const vwap = (twap * 3 + close) / 4;
    const volume = this.#market.indexValues.volumeAt(series, lastTick);
    const quoteLog = series.quote ? this.#market.indexValues.usdLogPriceAt(series.quote, lastTick) : 0;
    const prices = [open, high, low, close, vwap, twap].map(Math.exp);
    return { prices, volume, volumeUsd: volume * Math.exp(vwap + quoteLog) };
  }

  #endOffset(): number {
    return this.#market.quirks.barEnd === "midnight" ? DAY_MS : DAY_MS - 1;
  }

  #summarize(series: IndexSeries, day: number, nowMs: number): PriceSummary | undefined {
    const first = this.#market.calendar.firstTickOfDay(day);
    const end = Math.min(
      this.#market.calendar.firstTickOfDay(day + 1),
      this.#market.calendar.newestTick(nowMs) + 1,
    );
    if (end <= first) return undefined;
    if (this.#market.calendar.isClosed(first)) return undefined;
    const summary = this.#market.indexValues.summarizeDay(series, day, end);
    return this.#isPublishedAsIs(series, first, summary, day, nowMs)
      ? summary
      : this.#summarizePublished(series, first, end, nowMs);
  }

  /** Whether the four ticks that a summary names are published, and no tick of the day still has an error. */
  #isPublishedAsIs(
    series: IndexSeries,
    first: number,
    { highTick, lowTick, lastTick }: DaySummary,
    day: number,
    nowMs: number,
  ): boolean {
    if (!this.#market.calendar.hasChangingTicks) return true;
    const isPublished = (tick: number) => this.#market.calendar.isPublished(series, tick, nowMs);
    return (
      this.isSettled(day, nowMs) && [first, highTick, lowTick, lastTick].every((tick) => isPublished(tick))
    );
  }

  /** Reads every tick that is published by `nowMs`, with its uncorrected error. */
  #summarizePublished(
    series: IndexSeries,
    first: number,
    end: number,
    nowMs: number,
  ): PriceSummary | undefined {
    const logs = this.#market.indexValues.logPrices(series, first, end - first);
    let summary: PriceSummary | undefined;
    for (let at = 0; at < logs.length; at++) {
      const tick = first + at;
      if (!this.#market.calendar.isPublished(series, tick, nowMs)) continue;
      const log = (logs[at] as number) + this.#market.calendar.priceError(series, tick, nowMs);
      const { open, high, low } = summary ?? { open: log, high: log, low: log };
      summary = { open, high: Math.max(high, log), low: Math.min(low, log), close: log, lastTick: tick };
    }
    return summary;
  }
}
