import type { BarHistory, DailyBarRecord } from "./bar-history.ts";
import type { IndexSeries, IndexTable, IndexType } from "./index-series.ts";
import type { TickCalendar } from "./tick-calendar.ts";
import type { IndexTickRecord, TickHistory } from "./tick-history.ts";
import { DAY_MS } from "./utc-text.ts";

export interface TruthParts {
  readonly table: IndexTable;
  readonly calendar: TickCalendar;
  readonly ticks: TickHistory;
  readonly bars: BarHistory;
}

/**
 * What the service would answer, without asking it: the oracle of tests. All ranges are half-open, records come oldest
 * first, and every switch of the quirks is obeyed, but for how records are written (decimals are text here).
 */
export class Truth {
  readonly #parts: TruthParts;

  constructor(parts: TruthParts) {
    this.#parts = parts;
  }

  /** The index ticks of [fromMs, toMs) that REST serves at `nowMs`. */
  indexTicks(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): IndexTickRecord[] {
    const series = this.#series(type, id);
    const { ticks, calendar } = this.#parts;
    const { oldest, newest } = ticks.span(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / calendar.tickMs));
    const end = Math.min(newest + 1, Math.ceil(toMs / calendar.tickMs));
    const found: IndexTickRecord[] = [];
    for (let tick = first; tick < end; tick++)
      if (ticks.known(series, tick, nowMs)) found.push(ticks.record(series, tick, nowMs));
    return found;
  }

  /** The bars of the days that begin in [fromMs, toMs) that REST serves at `nowMs`. */
  dailyBars(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): DailyBarRecord[] {
    const series = this.#series(type, id);
    const { bars } = this.#parts;
    const { oldest, newest } = bars.span(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / DAY_MS));
    const end = Math.min(newest + 1, Math.ceil(toMs / DAY_MS));
    const found: DailyBarRecord[] = [];
    for (let day = first; day < end; day++) {
      const record = bars.record(series, day, nowMs);
      if (record) found.push(record);
    }
    return found;
  }

  #series(type: IndexType, id: string): IndexSeries {
    const series = this.#parts.table.byId(id);
    if (!series || series.type !== type) throw new RangeError(`no index ${id} of type ${type}`);
    return series;
  }
}
