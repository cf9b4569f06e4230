import { UtcWriter } from "../market/format.ts";
import type { IndexFigures, IndexSeries, IndexType } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import { type RecordIds, stepDigits } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { History, PageRows } from "./history.ts";
import type { WireWriter } from "./json-writer.ts";

export interface IndexTickRecord {
  readonly id: string;
  readonly indexId: string;
  readonly indexType: IndexType;
  readonly price: string;
  readonly volume: string;
  /** LX only. */
  readonly tickVolume?: string;
  readonly timestamp: string;
}

/** Intraday index ticks: one step is one refresh of the service. */
export class TickHistory implements History {
  readonly name = "index-ticker";
  readonly endsForGood = false;
  readonly #calendar: TickCalendar;
  readonly #figures: IndexFigures;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #wire: WireWriter;
  readonly #utc: UtcWriter;

  constructor(
    calendar: TickCalendar,
    figures: IndexFigures,
    ids: RecordIds,
    quirks: Quirks,
    wire: WireWriter,
  ) {
    this.#calendar = calendar;
    this.#figures = figures;
    this.#ids = ids;
    this.#quirks = quirks;
    this.#wire = wire;
    this.#utc = new UtcWriter(quirks.fractionDigits);
  }

  kind(type: IndexType) {
    return `${type} tick` as const;
  }

  stepUpTo(ms: number): number {
    const step = Math.floor(ms / this.#calendar.tickMs);
    const exactly = step * this.#calendar.tickMs === ms;
    return exactly && this.#quirks.upperBound === "exclusive" ? step - 1 : step;
  }

  span(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const { first, end } = this.#calendar.life(series);
    return {
      oldest: Math.max(first, this.#calendar.windowFloor(nowMs)),
      newest: Math.min(end - 1, this.#calendar.newest(nowMs)),
    };
  }

  known(series: IndexSeries, step: number, nowMs: number): boolean {
    return this.#calendar.known(series, step, nowMs);
  }

  settled(step: number, nowMs: number): boolean {
    return step * this.#calendar.tickMs + this.#calendar.unsettledMs <= nowMs;
  }

  reachable(step: number, nowMs: number): boolean {
    return step >= this.#calendar.windowFloor(nowMs);
  }

  record(series: IndexSeries, tick: number, nowMs: number): IndexTickRecord {
    return this.#record(series, tick, this.#figures.logAt(series, tick), nowMs);
  }

  /** The records of many ticks of one index; much cheaper than one by one. */
  records(series: IndexSeries, ticks: readonly number[], nowMs: number): IndexTickRecord[] {
    const logs = this.#logsOf({ series: ticks.map(() => series), steps: ticks.toReversed() });
    return ticks.map((tick, at) => this.#record(series, tick, logs[ticks.length - 1 - at] as number, nowMs));
  }

  render(rows: PageRows, nowMs: number): string {
    const { extraProperties, reorderedProperties } = this.#quirks;
    const logs = this.#logsOf(rows);
    if (!extraProperties && !reorderedProperties) return this.#renderFast(rows, logs, nowMs);
    return rows.steps
      .map((tick, at) => {
        const series = rows.series[at] as IndexSeries;
        return this.#wire.record(this.#record(series, tick, logs[at] as number, nowMs));
      })
      .join(",");
  }

  #record(series: IndexSeries, tick: number, log: number, nowMs: number): IndexTickRecord {
    return {
      id: this.#ids.id(this.kind(series.type), series.ordinal, tick),
      indexId: series.id,
      indexType: series.type,
      price: this.#figures.price(series, log + this.#calendar.error(series, tick, nowMs)),
      volume: this.#figures.volume(series, tick),
      ...(series.type === "LX" ? { tickVolume: this.#figures.tickVolume(series, tick) } : {}),
      timestamp: this.#utc.write(tick * this.#calendar.tickMs),
    };
  }

  /** Long runs of one index come from whole blocks of the price model; scattered records one by one. */
  #logsOf({ series, steps }: PageRows): Float64Array {
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
      const logs = this.#figures.logs(first, oldest, newest - oldest + 1);
      if (newest - oldest < 2 * steps.length && series.every((one) => one === first))
        return Float64Array.from(steps, (step) => logs[step - oldest] as number);
    }
    return Float64Array.from(steps, (step, at) => this.#figures.logAt(series[at] as IndexSeries, step));
  }

  /** The same text as the wire writer's, without an object per record. */
  #renderFast({ series: lanes, steps }: PageRows, logs: Float64Array, nowMs: number): string {
    const mark = this.#quirks.decimals === "string" ? '"' : "";
    const calendar = this.#calendar;
    const figures = this.#figures;
    let series: IndexSeries | undefined;
    let before = "";
    let middle = "";
    let text = "";
    for (let at = 0; at < steps.length; at++) {
      const lane = lanes[at] as IndexSeries;
      if (lane !== series) {
        series = lane;
        const frame = this.#ids.frame(this.kind(lane.type), lane.ordinal);
        before = `{"id":${openQuote(frame.before)}`;
        middle = `${closeQuote(frame.after)},"indexId":${JSON.stringify(lane.id)},"indexType":"${lane.type}","price":${mark}`;
      }
      const tick = steps[at] as number;
      const log = (logs[at] as number) + calendar.error(lane, tick, nowMs);
      const traded =
        lane.type === "LX" ? `,"tickVolume":${mark}${figures.tickVolume(lane, tick)}${mark}` : "";
      text += `${at === 0 ? "" : ","}${before}${stepDigits(tick)}${middle}${figures.price(lane, log)}${mark},"volume":${mark}${figures.volume(lane, tick)}${mark}${traded},"timestamp":"${this.#utc.write(tick * calendar.tickMs)}"}`;
    }
    return text;
  }
}

function openQuote(text: string): string {
  return JSON.stringify(text).slice(0, -1);
}

function closeQuote(text: string): string {
  return JSON.stringify(text).slice(1);
}
