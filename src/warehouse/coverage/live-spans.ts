import type { Micros } from "../../model/time.ts";
import { liveSpans } from "../schema/coverage.ts";
import { and, eq } from "../sqlite/drizzle.ts";
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
  const target = [liveSpans.stream, liveSpans.indexType, liveSpans.indexId];
  for (const { indexType, indexId = "", from } of spans) {
    const span = { stream, indexType, indexId, from, to: from };
    transaction.orm
      .insert(liveSpans)
      .values(span)
      .onConflictDoUpdate({ target, set: { from, to: from } })
      .run();
  }
}

/** Call it when ticks may have been missed: the unsettled ranges of these series become ordinary gaps again. */
export function endLiveSpans(transaction: Transaction, spans: readonly Omit<LiveSpan, "from">[]): void {
  for (const { indexType, indexId = "" } of spans) {
    const ofStream = eq(liveSpans.stream, stream);
    const isSpan = and(ofStream, eq(liveSpans.indexType, indexType), eq(liveSpans.indexId, indexId));
    transaction.orm.delete(liveSpans).where(isSpan).run();
  }
}

/** Call it at the start of a daemon: the process that received these spans has ended. */
export function clearLiveSpans(transaction: Transaction): void {
  transaction.orm.delete(liveSpans).run();
}

/** Call it in the transaction that stores all ticks of the index type up to `to`. */
export function extendLiveSpans(transaction: Transaction, indexType: string, to: Micros): void {
  transaction
    .statement("UPDATE live_spans SET to_ts = ? WHERE stream = ? AND index_type = ? AND to_ts < ?")
    .run([to, stream, indexType, to]);
}
