import { UtcFormatter } from "../market/format.ts";
import type { IndexSeries, IndexValues, SimulatedIndexType } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import { type RecordIds, scrambleStep } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { History, PageRecords } from "./history.ts";
import type { JsonWriter } from "./json-writer.ts";

export interface IndexTickRecord {
  readonly id: string;
  readonly indexId: string;
  readonly indexType: SimulatedIndexType;
  readonly price: string;
  readonly volume: string;
  /** LX only. */
  readonly tickVolume?: string;
  readonly timestamp: string;
}

/** Intraday index ticks: one step is one refresh of the service. */
export class TickHistory implements History {
  readonly name = "index-ticker";
  readonly hasFixedEnd = false;
  readonly #calendar: TickCalendar;
  readonly #indexValues: IndexValues;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #writer: JsonWriter;
  readonly #utc: UtcFormatter;

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
    return `${type} tick` as const;
  }

  lastStepUpTo(ms: number): number {
    const step = Math.floor(ms / this.#calendar.tickMs);
    const isExact = step * this.#calendar.tickMs === ms;
    return isExact && this.#quirks.upperBound === "exclusive" ? step - 1 : step;
  }

  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const { first, end } = this.#calendar.tickRange(series);
    return {
      oldest: Math.max(first, this.#calendar.oldestTickInWindow(nowMs)),
      newest: Math.min(end - 1, this.#calendar.newestTick(nowMs)),
    };
  }

  isPublished(series: IndexSeries, step: number, nowMs: number): boolean {
    return this.#calendar.isPublished(series, step, nowMs);
  }

  isSettled(step: number, nowMs: number): boolean {
    return step * this.#calendar.tickMs + this.#calendar.settleDelayMs <= nowMs;
  }

  isReachable(step: number, nowMs: number): boolean {
    return step >= this.#calendar.oldestTickInWindow(nowMs);
  }

  record(series: IndexSeries, tick: number, nowMs: number): IndexTickRecord {
    return this.#record(series, tick, this.#indexValues.logPriceAt(series, tick), nowMs);
  }

  /** The records of many ticks of one index. Much cheaper than one call per tick. */
  records(series: IndexSeries, ticks: readonly number[], nowMs: number): IndexTickRecord[] {
    const logs = this.#logPrices({ series: ticks.map(() => series), steps: ticks.toReversed() });
    return ticks.map((tick, at) => this.#record(series, tick, logs[ticks.length - 1 - at] as number, nowMs));
  }

  render(records: PageRecords, nowMs: number): string {
    const { extraProperties, reorderedProperties } = this.#quirks;
    const logs = this.#logPrices(records);
    if (!extraProperties && !reorderedProperties) return this.#renderFast(records, logs, nowMs);
    return records.steps
      .map((tick, at) => {
        const series = records.series[at] as IndexSeries;
        return this.#writer.formatRecord(this.#record(series, tick, logs[at] as number, nowMs));
      })
      .join(",");
  }

  #record(series: IndexSeries, tick: number, log: number, nowMs: number): IndexTickRecord {
    return {
      id: this.#ids.encode(this.recordKind(series.type), series.ordinal, tick),
      indexId: series.id,
      indexType: series.type,
      price: this.#indexValues.formatPrice(series, log + this.#calendar.priceError(series, tick, nowMs)),
      volume: this.#indexValues.formatVolume(series, tick),
      ...(series.type === "LX" ? { tickVolume: this.#indexValues.formatTickVolume(series, tick) } : {}),
      timestamp: this.#utc.format(tick * this.#calendar.tickMs),
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
      const logs = this.#indexValues.logPrices(first, oldest, newest - oldest + 1);
      if (newest - oldest < 2 * steps.length && series.every((one) => one === first))
        return Float64Array.from(steps, (step) => logs[step - oldest] as number);
    }
    return Float64Array.from(steps, (step, at) =>
      this.#indexValues.logPriceAt(series[at] as IndexSeries, step),
    );
  }

  /** Renders the same text as JsonWriter, without creating an object per record. */
  #renderFast({ series: seriesList, steps }: PageRecords, logs: Float64Array, nowMs: number): string {
    const quote = this.#quirks.decimals === "string" ? '"' : "";
    const calendar = this.#calendar;
    const indexValues = this.#indexValues;
    let series: IndexSeries | undefined;
    let before = "";
    let middle = "";
    let text = "";
    for (let at = 0; at < steps.length; at++) {
      const current = seriesList[at] as IndexSeries;
      if (current !== series) {
        series = current;
        const affixes = this.#ids.affixes(this.recordKind(current.type), current.ordinal);
        before = `{"id":${quotedPrefix(affixes.prefix)}`;
        middle = `${quotedSuffix(affixes.suffix)},"indexId":${JSON.stringify(current.id)},"indexType":"${current.type}","price":${quote}`;
      }
      const tick = steps[at] as number;
      const log = (logs[at] as number) + calendar.priceError(current, tick, nowMs);
      const tickVolume =
        current.type === "LX"
          ? `,"tickVolume":${quote}${indexValues.formatTickVolume(current, tick)}${quote}`
          : "";
      text += `${at === 0 ? "" : ","}${before}${scrambleStep(tick)}${middle}${indexValues.formatPrice(current, log)}${quote},"volume":${quote}${indexValues.formatVolume(current, tick)}${quote}${tickVolume},"timestamp":"${this.#utc.format(tick * calendar.tickMs)}"}`;
    }
    return text;
  }
}

function quotedPrefix(text: string): string {
  return JSON.stringify(text).slice(0, -1);
}

function quotedSuffix(text: string): string {
  return JSON.stringify(text).slice(1);
}
