import { type IndexSeries, type SimulatedIndexType, TICK_VOLUME_DIGITS } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { scrambleStep } from "../market/record-ids.ts";
import type { History, PageRecords } from "./history.ts";
import type { JsonWriter } from "./json-writer.ts";
import { createAffixes, type PageWriter, type RecordAffixes, writeFigure } from "./page-writer.ts";

export type IndexTickRecord = ReturnType<TickHistory["records"]>[number];

/** More than a tick has without its ids. */
const MAX_TICK_BYTES = 512;

/** Intraday index ticks: one step is one refresh of the service. */
export class TickHistory implements History {
  readonly name = "index-ticker";
  readonly hasFixedEnd = false;
  readonly #market: MarketModel;
  readonly #jsonWriter: JsonWriter;

  constructor(market: MarketModel, jsonWriter: JsonWriter) {
    this.#market = market;
    this.#jsonWriter = jsonWriter;
  }

  recordKind(type: SimulatedIndexType) {
    return `${type} tick` as const;
  }

  lastStepUpTo(ms: number): number {
    const step = Math.floor(ms / this.#market.calendar.tickMs);
    const isExact = step * this.#market.calendar.tickMs === ms;
    return isExact && this.#market.quirks.upperBound === "exclusive" ? step - 1 : step;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const { first, end } = this.#market.calendar.tickRange(series);
    return {
      oldest: Math.max(first, this.#market.calendar.oldestTickInWindow(nowMs)),
      newest: Math.min(end - 1, this.#market.calendar.newestTick(nowMs)),
    };
  }

  isPublished(series: IndexSeries, step: number, nowMs: number): boolean {
    return this.#market.calendar.isPublished(series, step, nowMs);
  }

  isSettled(step: number, nowMs: number): boolean {
    return step * this.#market.calendar.tickMs + this.#market.calendar.settleDelayMs <= nowMs;
  }

  isReachable(step: number, nowMs: number): boolean {
    return step >= this.#market.calendar.oldestTickInWindow(nowMs);
  }

  /** The records of many ticks of one index. Much cheaper than one call per tick. */
  records(series: IndexSeries, ticks: readonly number[], nowMs: number) {
    const logs = this.#logPrices({ series: ticks.map(() => series), steps: ticks.toReversed() });
    return ticks.map((tick, at) => this.#record(series, tick, logs[ticks.length - 1 - at] as number, nowMs));
  }

  write(records: PageRecords, nowMs: number, writer: PageWriter): void {
    const { extraProperties, reorderedProperties } = this.#market.quirks;
    const logs = this.#logPrices(records);
    if (!extraProperties && !reorderedProperties) {
      this.#writePlain(records, logs, nowMs, writer);
      return;
    }
    const texts = records.steps.map((tick, at) => {
      const series = records.series[at] as IndexSeries;
      return this.#jsonWriter.formatRecord(this.#record(series, tick, logs[at] as number, nowMs));
    });
    writer.writeText(texts.join(","));
  }

  #record(series: IndexSeries, tick: number, log: number, nowMs: number) {
    return {
      id: this.#market.ids.encode(this.recordKind(series.type), series.ordinal, tick),
      indexId: series.id,
      indexType: series.type,
      price: this.#market.indexValues.formatPrice(
        series,
        log + this.#market.calendar.priceError(series, tick, nowMs),
      ),
      volume: this.#market.indexValues.formatVolume(series, tick),
      ...(series.type === "LX"
        ? { tickVolume: this.#market.indexValues.formatTickVolume(series, tick) }
        : {}),
      timestamp: this.#market.utc.format(tick * this.#market.calendar.tickMs),
    };
  }

  /** Reads long runs of one index in blocks, and scattered records one by one. */
  #logPrices({ series, steps }: PageRecords): Float64Array {
    const first = series[0];
    const newest = steps[0];
    const oldest = steps.at(-1);
    if (
      first &&
      newest !== undefined &&
      oldest !== undefined &&
      steps.length > 100 &&
      series.at(-1) === first
    ) {
      const logs = this.#market.indexValues.logPrices(first, oldest, newest - oldest + 1);
      if (newest - oldest < 2 * steps.length && series.every((one) => one === first))
        return Float64Array.from(steps, (step) => logs[step - oldest] as number);
    }
    return Float64Array.from(steps, (step, at) =>
      this.#market.indexValues.logPriceAt(series[at] as IndexSeries, step),
    );
  }

  /** Writes the same text as JsonWriter would, without creating an object per record. */
  #writePlain(
    { series: seriesList, steps }: PageRecords,
    logs: Float64Array,
    nowMs: number,
    writer: PageWriter,
  ): void {
    const quote = this.#market.quirks.decimals === "string" ? '"' : "";
    const { calendar, indexValues, utc } = this.#market;
    let affixes: RecordAffixes | undefined;
    for (let at = 0; at < steps.length; at++) {
      const series = seriesList[at] as IndexSeries;
      if (series !== seriesList[at - 1] || !affixes)
        affixes = createAffixes(this.#market.ids, this.recordKind(series.type), series);
      const tick = steps[at] as number;
      const log = (logs[at] as number) + calendar.priceError(series, tick, nowMs);
      writer.reserve(MAX_TICK_BYTES + affixes.bytes);
      if (at > 0) writer.writeAscii(",");
      writer.writeBytes(affixes.start);
      writer.writeAscii(scrambleStep(tick));
      writer.writeBytes(affixes.afterId);
      writeFigure(writer, ',"price":', Math.exp(log), series.priceDigits, quote);
      writeFigure(writer, ',"volume":', indexValues.volumeAt(series, tick), series.volumeDigits, quote);
      if (series.type === "LX")
        writeFigure(
          writer,
          ',"tickVolume":',
          indexValues.tickVolumeAt(series, tick),
          TICK_VOLUME_DIGITS,
          quote,
        );
      writer.writeAscii(',"timestamp":"');
      writer.writeAscii(utc.format(tick * calendar.tickMs));
      writer.writeAscii('"}');
    }
  }
}
