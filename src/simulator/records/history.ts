import type { HistorySeries } from "../../api-server/source.ts";
import type { IndexSeries, SimulatedIndexType } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";

/** `Content`: what a record has beside its id and its index. */
type HistoryRecord<Content> = { id: string; indexId: string; indexType: SimulatedIndexType } & Content;

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<Content extends object = object> {
  abstract readonly kind: string;
  abstract readonly stepMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  abstract readonly boundMs: number;
  protected readonly market: MarketModel;

  constructor(market: MarketModel) {
    this.market = market;
  }

  /** The steps that can have records now, both inclusive. */
  abstract stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists by `nowMs`, for a step within `stepRange`. */
  abstract isPublished(series: IndexSeries, step: number, nowMs: number): boolean;
  /** A record without its id and its index. */
  abstract content(series: IndexSeries, step: number, nowMs: number): Content | undefined;

  record(series: IndexSeries, step: number, nowMs: number): HistoryRecord<Content> | undefined {
    const content = this.content(series, step, nowMs);
    const id = this.#idAt(series, step * this.stepMs * 1000);
    return content && { id, indexId: series.id, indexType: series.type, ...content };
  }

  /** An index as the server reads it at `nowMs`. Rows are steps. */
  open(series: IndexSeries, nowMs: number): HistorySeries<number> {
    const stepMicros = this.stepMs * 1000;
    const read = (from: number, to: number, limit: number) => {
      const { oldest, newest } = this.stepRange(series, nowMs);
      const first = Math.max(oldest, Math.ceil(from / stepMicros));
      const steps: number[] = [];
      for (let step = Math.min(newest, Math.ceil(to / stepMicros) - 1); step >= first; step--) {
        if (steps.length === limit) break;
        if (this.isPublished(series, step, nowMs)) steps.push(step);
      }
      return steps;
    };
    const index = `"indexId":${JSON.stringify(series.id)},"indexType":"${series.type}"`;
    const write = (step: number) => {
      const content = this.content(series, step, nowMs);
      const id = this.#idAt(series, step * stepMicros);
      return content && `{"id":"${id}",${index},${JSON.stringify(content).slice(1)}`;
    };
    return {
      indexType: series.type,
      rank: series.rank,
      isEmpty: series.firstDay >= series.endDay,
      bound: this.boundMs * 1000,
      read,
      latest: () => read(0, Number.POSITIVE_INFINITY, 1)[0],
      tsOf: (step) => step * stepMicros,
      write,
      cursorAt: (ts) => this.#idAt(series, ts),
    };
  }

  #idAt({ rank }: IndexSeries, ts: number): string {
    return this.market.ids.encode(this.kind, rank, ts);
  }
}
