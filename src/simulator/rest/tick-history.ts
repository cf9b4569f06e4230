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
  readonly #figures: IndexValues;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #wire: JsonWriter;
  readonly #utc: UtcFormatter;

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
    return `${type} tick` as const;
  }

  lastStepUpTo(ms: number): number {
    const step = Math.floor(ms / this.#calendar.tickMs);
    const exactly = step * this.#calendar.tickMs === ms;
    return exactly && this.#quirks.upperBound === "exclusive" ? step - 1 : step;
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
    return this.#record(series, tick, this.#figures.logPriceAt(series, tick), nowMs);
  }

  /** The records of many ticks of one index; much cheaper than one by one. */
  records(series: IndexSeries, ticks: readonly number[], nowMs: number): IndexTickRecord[] {
    const logs = this.#logPrices({ series: ticks.map(() => series), steps: ticks.toReversed() });
    return ticks.map((tick, at) => this.#record(series, tick, logs[ticks.length - 1 - at] as number, nowMs));
  }

  render(rows: PageRecords, nowMs: number): string {
    const { extraProperties, reorderedProperties } = this.#quirks;
    const logs = this.#logPrices(rows);
    if (!extraProperties && !reorderedProperties) return this.#renderFast(rows, logs, nowMs);
    return rows.steps
      .map((tick, at) => {
        const series = rows.series[at] as IndexSeries;
        return this.#wire.formatRecord(this.#record(series, tick, logs[at] as number, nowMs));
      })
      .join(",");
  }

  #record(series: IndexSeries, tick: number, log: number, nowMs: number): IndexTickRecord {
    return {
      id: this.#ids.encode(this.recordKind(series.type), series.ordinal, tick),
      indexId: series.id,
      indexType: series.type,
      price: this.#figures.formatPrice(series, log + this.#calendar.priceError(series, tick, nowMs)),
      volume: this.#figures.formatVolume(series, tick),
      ...(series.type === "LX" ? { tickVolume: this.#figures.formatTickVolume(series, tick) } : {}),
      timestamp: this.#utc.format(tick * this.#calendar.tickMs),
    };
  }

  /** Long runs of one index come from whole blocks of the price model; scattered records one by one. */
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
      const logs = this.#figures.logPrices(first, oldest, newest - oldest + 1);
      if (newest - oldest < 2 * steps.length && series.every((one) => one === first))
        return Float64Array.from(steps, (step) => logs[step - oldest] as number);
    }
    return Float64Array.from(steps, (step, at) => this.#figures.logPriceAt(series[at] as IndexSeries, step));
  }

  /** The same text as the wire writer's, without an object per record. */
  #renderFast({ series: seriesList, steps }: PageRecords, logs: Float64Array, nowMs: number): string {
    const mark = this.#quirks.decimals === "string" ? '"' : "";
    const calendar = this.#calendar;
    const figures = this.#figures;
    let series: IndexSeries | undefined;
    let before = "";
    let middle = "";
    let text = "";
    for (let at = 0; at < steps.length; at++) {
      const lane = seriesList[at] as IndexSeries;
      if (lane !== series) {
        series = lane;
        const frame = this.#ids.affixes(this.recordKind(lane.type), lane.ordinal);
        before = `{"id":${quotedPrefix(frame.prefix)}`;
        middle = `${quotedSuffix(frame.after)},"indexId":${JSON.stringify(lane.id)},"indexType":"${lane.type}","price":${mark}`;
      }
      const tick = steps[at] as number;
      const log = (logs[at] as number) + calendar.priceError(lane, tick, nowMs);
      const traded =
        lane.type === "LX" ? `,"tickVolume":${mark}${figures.formatTickVolume(lane, tick)}${mark}` : "";
      text += `${at === 0 ? "" : ","}${before}${scrambleStep(tick)}${middle}${figures.formatPrice(lane, log)}${mark},"volume":${mark}${figures.formatVolume(lane, tick)}${mark}${traded},"timestamp":"${this.#utc.format(tick * calendar.tickMs)}"}`;
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
