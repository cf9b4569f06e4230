import type { HistoryRecord, HistorySeries } from "../../api-server/source.ts";
import type { IndexSeries } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";

/** `Content`: what a record has beside its id and its index. */
type SimulatedRecord<Content> = { id: string; indexId: string; indexType: IndexSeries["type"] } & Content;

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<Content extends object = object> {
  abstract readonly kind: string;
  abstract readonly stepMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  readonly boundMs: number = 0;
  protected readonly market: MarketModel;

  constructor(market: MarketModel) {
    this.market = market;
  }

  /** The steps that can have records now, both inclusive. */
  abstract stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether a record within `stepRange` may be seen by `nowMs`. */
  isPublished(_series: IndexSeries, _step: number, _nowMs: number): boolean {
    return true;
  }

  /** A record without its id and its index. */
  abstract content(series: IndexSeries, step: number, nowMs: number): Content | undefined;

  record(series: IndexSeries, step: number, nowMs: number): SimulatedRecord<Content> | undefined {
    const content = this.content(series, step, nowMs);
    const id = this.#idAt(series, step * this.stepMs * 1000);
    return content && { id, indexId: series.id, indexType: series.type, ...content };
  }

  /** An index as the server reads it at `nowMs`. */
  open(series: IndexSeries, nowMs: number): HistorySeries {
    const stepMicros = this.stepMs * 1000;
    const read = (from: number, to: number, limit: number) => {
      const { oldest, newest } = this.stepRange(series, nowMs);
      const first = Math.max(oldest, Math.ceil(from / stepMicros));
      const records: HistoryRecord[] = [];
      for (let step = Math.min(newest, Math.ceil(to / stepMicros) - 1); step >= first; step--) {
        if (records.length === limit) break;
        const record = this.isPublished(series, step, nowMs) && this.record(series, step, nowMs);
        if (record) records.push({ ts: step * stepMicros, text: JSON.stringify(record) });
      }
      return records;
    };
    return {
      indexType: series.type,
      rank: series.rank,
      isEmpty: series.firstDay >= series.endDay,
      bound: this.boundMs * 1000,
      read,
      latest: () => read(0, Number.POSITIVE_INFINITY, 1)[0],
      cursorAt: (ts) => this.#idAt(series, ts),
    };
  }

  #idAt({ rank }: IndexSeries, ts: number): string {
    return this.market.ids.encode(this.kind, rank, ts);
  }
}
