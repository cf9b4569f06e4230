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

const extendWholeSql =
  "UPDATE live_spans SET to_ts = max(to_ts, ?) WHERE stream = ? AND index_type = ? AND index_id = ''";
/** The ticks come first: the other way round, all of them would be scanned for each span. */
const extendSql = `INSERT INTO live_spans (stream, index_type, index_id, from_ts, to_ts)
    SELECT l.stream, l.index_type, l.index_id, l.from_ts, n.value FROM json_each(?) n CROSS JOIN live_spans l
    WHERE l.stream = ? AND l.index_type = ? AND l.index_id = n.key AND l.to_ts < n.value
  ON CONFLICT DO UPDATE SET to_ts = excluded.to_ts`;

/** Extends each span to the newest tick of its own subscription. Call it in the transaction that stores the ticks. */
export function extendLiveSpans(transaction: Transaction, ticks: readonly SpanTick[]): void {
  const newest = new Map<string, Micros>();
  for (const { indexType, ts } of ticks) if (ts > (newest.get(indexType) ?? 0)) newest.set(indexType, ts);
  for (const [indexType, newestOfType] of newest) {
    // Either the whole type is subscribed to, or single indices.
    if (transaction.run(extendWholeSql, [newestOfType, stream, indexType]) > 0) continue;
    const newestById: Record<string, Micros> = {};
    for (const tick of ticks)
      if (tick.indexType === indexType && tick.ts > (newestById[tick.indexId] ?? 0))
        newestById[tick.indexId] = tick.ts;
    transaction.run(extendSql, [JSON.stringify(newestById), stream, indexType]);
  }
}
