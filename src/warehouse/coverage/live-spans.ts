import type { Micros } from "../../model/time.ts";
import type { Transaction } from "../tables/transaction.ts";

/** What one subscription to index ticks has heard without a break, from its confirmation on. */
export interface LiveSpan {
  readonly indexType: string;
  /** Undefined: the subscription is to the whole family. */
  readonly indexId?: string | undefined;
  readonly from: Micros;
}

const stream = "index_ticks";

/** Live ticks flow for these subscriptions: their heads only await confirmation by REST. */
export function beginLiveSpans(transaction: Transaction, spans: readonly LiveSpan[]): void {
  const sql = `INSERT INTO live_spans (stream, index_type, index_id, from_ts, to_ts) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (stream, index_type, index_id) DO UPDATE SET from_ts = excluded.from_ts, to_ts = excluded.to_ts`;
  for (const { indexType, indexId = "", from } of spans)
    transaction.statement(sql).run([stream, indexType, indexId, from, from]);
}

/** Something may have been missed: what is not settled of these is open like any other hole. */
export function endLiveSpans(transaction: Transaction, spans: readonly Omit<LiveSpan, "from">[]): void {
  const sql = "DELETE FROM live_spans WHERE stream = ? AND index_type = ? AND index_id = ?";
  for (const { indexType, indexId = "" } of spans)
    transaction.statement(sql).run([stream, indexType, indexId]);
}

/** Whoever wrote these is gone: nobody has listened since. */
export function forgetLiveSpans(transaction: Transaction): void {
  transaction.statement("DELETE FROM live_spans").run([]);
}

/** Ticks of a family were heard, and are stored in this transaction, up to `to`. */
export function extendLiveSpans(transaction: Transaction, indexType: string, to: Micros): void {
  transaction
    .statement("UPDATE live_spans SET to_ts = ? WHERE stream = ? AND index_type = ? AND to_ts < ?")
    .run([to, stream, indexType, to]);
}
