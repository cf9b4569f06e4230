import type { HistorySeries } from "../../api-server/source.ts";
import { formatDecimal, formatUtc } from "../market/format.ts";
import type { IndexSeries, SimulatedIndexType } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { RecordKind } from "../market/record-ids.ts";

/** A number of a record, and how many digits its fraction has. */
export type RecordFigure = readonly [name: string, value: number, digits: number];

export type HistoryRecord<Name extends string> = Readonly<
  Record<"id" | "indexId" | Name, string> & { indexType: SimulatedIndexType }
>;

/** What a record has beside its id and its index, in this order. */
interface RecordContent {
  readonly figures: readonly RecordFigure[];
  readonly moments: readonly (readonly [name: string, ms: number])[];
}

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<HistoryRecord extends { id: string } = { id: string }> {
  abstract readonly stepMs: number;
  /** How long after the start of its step a record is final, if no tick is late. */
  abstract readonly finalAfterMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  abstract readonly boundMs: number;
  protected readonly market: MarketModel;

  constructor(market: MarketModel) {
    this.market = market;
  }

  abstract recordKind(type: SimulatedIndexType): RecordKind;
  /** The steps that can have records now, both inclusive. */
  abstract stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists by `nowMs`, for a step within `stepRange`. */
  abstract isPublished(series: IndexSeries, step: number, nowMs: number): boolean;
  protected abstract content(series: IndexSeries, step: number, nowMs: number): RecordContent | undefined;

  /** Whether this step and all older ones are final, except for leaving the window. */
  isSettled(step: number, nowMs: number): boolean {
    return step * this.stepMs + this.finalAfterMs + this.market.calendar.settleDelayMs <= nowMs;
  }

  record(series: IndexSeries, step: number, nowMs: number): HistoryRecord | undefined {
    const content = this.content(series, step, nowMs);
    if (!content) return undefined;
    const id = this.#idAt(series, step);
    const record: Record<string, string> = { id, indexId: series.id, indexType: series.type };
    for (const [name, value, digits] of content.figures) record[name] = formatDecimal(value, digits);
    for (const [name, ms] of content.moments) record[name] = formatUtc(ms);
    return record as HistoryRecord;
  }

  /** The published steps between two, both inclusive, newest first. */
  listSteps(series: IndexSeries, from: number, to: number, limit: number, nowMs: number): number[] {
    const { oldest, newest } = this.stepRange(series, nowMs);
    const steps: number[] = [];
    for (let step = Math.min(to, newest); step >= Math.max(from, oldest) && steps.length < limit; step--)
      if (this.isPublished(series, step, nowMs)) steps.push(step);
    return steps;
  }

  /** An index as the server reads it at `nowMs`. Rows are steps. */
  open(series: IndexSeries, nowMs: number): HistorySeries<number> {
    const stepMicros = this.stepMs * 1000;
    return {
      indexType: series.type,
      rank: series.rank,
      isEmpty: series.firstDay >= series.endDay,
      bound: this.boundMs * 1000,
      read: (from, to, limit) => {
        const [first, end] = [Math.ceil(from / stepMicros), Math.ceil(to / stepMicros)];
        return this.listSteps(series, first, end - 1, limit, nowMs);
      },
      tsOf: (step) => step * stepMicros,
      write: (step) => JSON.stringify(this.record(series, step, nowMs)),
      cursorAt: (ts) => this.#idAt(series, ts / stepMicros),
    };
  }

  /** The record that an id names, if it exists by `nowMs`. */
  findCursor(cursor: string, nowMs: number): { readonly ts: number; readonly rank: number } | undefined {
    const { ids, table } = this.market;
    const position = ids.decode(cursor);
    const series = position && table.all.find((each) => this.#isRecordOf(each, position));
    const isThere = series && this.listSteps(series, position.step, position.step, 1, nowMs).length > 0;
    return isThere ? { ts: position.step * this.stepMs * 1000, rank: series.rank } : undefined;
  }

  #isRecordOf({ type, ordinal }: IndexSeries, position: { kind: RecordKind; ordinal: number }): boolean {
    return ordinal === position.ordinal && this.recordKind(type) === position.kind;
  }

  #idAt({ type, ordinal }: IndexSeries, step: number): string {
    return this.market.ids.encode(this.recordKind(type), ordinal, step);
  }
}
