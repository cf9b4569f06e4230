import type { IndexTick } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import type { Transaction } from "../tables/transaction.ts";

/**
 * The time since which a subscription to index ticks has received everything. It begins when the service confirms the
 * subscription.
 */
export interface LiveSpan {
  readonly indexType: string;
  /** Undefined: the subscription is to all indices of the type. */
  readonly indexId?: string | undefined;
  readonly from: Micros;
}

const stream = "index_ticks";

/** Stores new live spans: the heads of their series are `settling` until REST confirms them. */
export function beginLiveSpans(transaction: Transaction, spans: readonly LiveSpan[]): void {
  const sql = `INSERT INTO live_spans (stream, index_type, index_id, from_ts, to_ts) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (stream, index_type, index_id) DO UPDATE SET from_ts = excluded.from_ts, to_ts = excluded.to_ts`;
  for (const { indexType, indexId = "", from } of spans)
    transaction.run(sql, [stream, indexType, indexId, from, from]);
}

/** Call it when ticks may have been missed: the unsettled ranges of these series become ordinary gaps again. */
export function endLiveSpans(transaction: Transaction, spans: readonly Omit<LiveSpan, "from">[]): void {
  const sql = "DELETE FROM live_spans WHERE stream = ? AND index_type = ? AND index_id = ?";
  for (const { indexType, indexId = "" } of spans) transaction.run(sql, [stream, indexType, indexId]);
}

/** Call it at the start of a daemon: the process that received these spans has ended. */
export function clearLiveSpans(transaction: Transaction): void {
  transaction.run("DELETE FROM live_spans");
}

type SpanTick = Pick<IndexTick, "indexType" | "indexId" | "ts">;

const extendSql =
  "UPDATE live_spans SET to_ts = max(to_ts, ?) WHERE stream = ? AND index_type = ? AND index_id = ?";

/** Extends each span to the newest tick of its own subscription. Call it in the transaction that stores the ticks. */
export function extendLiveSpans(transaction: Transaction, ticks: readonly SpanTick[]): void {
  for (const [indexType, ofType] of Map.groupBy(ticks, (tick) => tick.indexType)) {
    const extend = (indexId: string, own: readonly SpanTick[]) => {
      const newest = own.reduce((latest, { ts }) => Math.max(latest, ts), 0);
      return transaction.run(extendSql, [newest, stream, indexType, indexId]) > 0;
    };
    // Either the whole type is subscribed to, or single indices.
    if (extend("", ofType)) continue;
    for (const [indexId, own] of Map.groupBy(ofType, (tick) => tick.indexId)) extend(indexId, own);
  }
}
