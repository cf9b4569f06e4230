import { DAY_MS, plain, UtcWriter } from "../market/format.ts";
import type { IndexSeries, IndexType } from "../market/indexes.ts";
import { extremesOf, type IndexFigures } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds } from "../market/record-ids.ts";
import type { TickCalendar } from "../market/tick-calendar.ts";
import type { History, PageRows } from "./history.ts";
import type { WireWriter } from "./json-writer.ts";

export interface DailyBarRecord {
  readonly id: string;
  readonly indexId: string;
  readonly indexType: IndexType;
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

const KEPT_DAYS = 200_000;

/** End-of-day bars: one step is one day. Every bar is made from the ticks of its day. */
export class BarHistory implements History {
  readonly name = "ohlcv";
  readonly endsForGood = true;
  readonly #calendar: TickCalendar;
  readonly #figures: IndexFigures;
  readonly #ids: RecordIds;
  readonly #quirks: Quirks;
  readonly #wire: WireWriter;
  readonly #utc: UtcWriter;
  readonly #days = new Map<number, DaySummary | undefined>();

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
    return `${type} bar` as const;
  }

  stepUpTo(ms: number): number {
    const compared = this.#quirks.ohlcvTimestamp === "start" ? 0 : this.#endOffset();
    const day = Math.floor((ms - compared) / DAY_MS);
    const exactly = day * DAY_MS + compared === ms;
    return exactly && this.#quirks.upperBound === "exclusive" ? day - 1 : day;
  }

  span(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    const today = Math.floor(nowMs / DAY_MS);
    const newest = this.#quirks.partialBar ? today : today - 1;
    return { oldest: series.firstDay, newest: Math.min(series.endDay - 1, newest) };
  }

  known(series: IndexSeries, day: number, nowMs: number): boolean {
    const finished = (day + 1) * DAY_MS <= nowMs;
    return finished || this.#summary(series, day, nowMs) !== undefined;
  }

  settled(day: number, nowMs: number): boolean {
    return (day + 1) * DAY_MS + this.#calendar.unsettledMs <= nowMs;
  }

  reachable(): boolean {
    return true;
  }

  record(series: IndexSeries, day: number, nowMs: number): DailyBarRecord | undefined {
    const summary = this.#summary(series, day, nowMs);
    if (!summary) return undefined;
    const price = (log: number) => this.#figures.price(series, log);
    const volume = this.#figures.volumeAt(series, summary.lastTick);
    const quoteUsd = series.quote ? Math.exp(this.#figures.usdLogAt(series.quote, summary.lastTick)) : 1;
    // Near enough to the day's averages, and always between its extremes.
    const twap = (summary.open + summary.high + summary.low + summary.close) / 4;
    const vwap = (twap * 3 + summary.close) / 4;
    return {
      id: this.#ids.id(this.kind(series.type), series.ordinal, day),
      indexId: series.id,
      indexType: series.type,
      open: price(summary.open),
      high: price(summary.high),
      low: price(summary.low),
      close: price(summary.close),
      volume: this.#figures.volume(series, summary.lastTick),
      volumeUsd: plain(volume * Math.exp(vwap) * quoteUsd, 2),
      vwap: price(vwap),
      twap: price(twap),
      startTimestamp: this.#utc.write(day * DAY_MS),
      endTimestamp: this.#utc.write(day * DAY_MS + this.#endOffset()),
      ...(this.#quirks.barTimestamp ? { timestamp: this.#utc.write(day * DAY_MS) } : {}),
    };
  }

  render({ series, steps }: PageRows, nowMs: number): string {
    const texts = steps.flatMap((day, at) => {
      const record = this.record(series[at] as IndexSeries, day, nowMs);
      return record ? [this.#wire.record(record)] : [];
    });
    return texts.join(",");
  }

  #endOffset(): number {
    return this.#quirks.barEnd === "midnight" ? DAY_MS : DAY_MS - 1;
  }

  #summary(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    if (!this.settled(day, nowMs)) return this.#summarise(series, day, nowMs);
    const key = series.rank * 2 ** 20 + day;
    if (this.#days.has(key)) return this.#days.get(key);
    if (this.#days.size >= KEPT_DAYS) this.#days.clear();
    const summary = this.#summarise(series, day, nowMs);
    this.#days.set(key, summary);
    return summary;
  }

  #summarise(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    const first = this.#calendar.firstTickOfDay(day);
    const end = Math.min(this.#calendar.firstTickOfDay(day + 1), this.#calendar.newest(nowMs) + 1);
    if (end <= first) return undefined;
    if (!this.#calendar.changing) {
      const open = this.#figures.logAt(series, first);
      const close = this.#figures.logAt(series, end - 1);
      return { open, close, ...this.#figures.extremes(series, first, end), lastTick: end - 1 };
    }
    const { logs, lastTick } = this.#knownLogs(series, first, end, nowMs);
    const open = logs[0];
    const close = logs.at(-1);
    if (open === undefined || close === undefined) return undefined;
    return { open, close, ...extremesOf(logs), lastTick };
  }

  /** What is known now of a run of ticks, as it is known now. */
  #knownLogs(series: IndexSeries, first: number, end: number, nowMs: number) {
    const logs = this.#figures.logs(series, first, end - first);
    const found: number[] = [];
    let lastTick = first;
    for (let at = 0; at < logs.length; at++) {
      if (!this.#calendar.known(series, first + at, nowMs)) continue;
      found.push((logs[at] as number) + this.#calendar.error(series, first + at, nowMs));
      lastTick = first + at;
    }
    return { logs: Float64Array.from(found), lastTick };
  }
}
