import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { LiveEventReader } from "../decode/live-event.ts";
import type { LiveCoverage, SkippedTicks } from "./live-coverage.ts";

export interface LiveCommitResult {
  readonly indexTicks: WriteRecordsResult;
  readonly exchangeTicks: WriteRecordsResult;
  readonly rejected: number;
  readonly unknownEvents: number;
  /** The newest timestamp of the ticks; undefined without any. */
  readonly newest: Micros | undefined;
  /** Where the feed seems to have skipped index ticks. */
  readonly skippedTicks: readonly SkippedTicks[];
}

type LiveStream = "index_ticks" | "exchange_ticks";

/**
 * Commits a batch of websocket messages in one transaction. Index ticks settle nothing: only REST proves that
 * none is missing. Exchange ticks settle their periods, because they have no history for REST to check.
 */
export function commitLiveMessages(
  warehouse: WarehouseWriter,
  messages: readonly string[],
  liveCoverage: LiveCoverage,
): LiveCommitResult {
  const { indexTicks, exchangeTicks: allExchangeTicks, rejects, fields, events } = decodeMessages(messages);
  const exchangeTicks = liveCoverage.filterSelected(allExchangeTicks);
  const commit = (transaction: Transaction) => {
    for (const stream of ["index_ticks", "exchange_ticks"] as const) {
      storeRejects(transaction, stream, rejects[stream], null);
      countUnknownFields(transaction, stream, fields[stream]);
    }
    for (const event of events) countUnknownEvent(transaction, event);
    const written = {
      indexTicks: writeRecords(transaction, "index_ticks", indexTicks, "live"),
      exchangeTicks: writeRecords(transaction, "exchange_ticks", exchangeTicks, "live"),
    };
    const plausibleTicks = liveCoverage.addIndexTicks(transaction, indexTicks);
    liveCoverage.addExchangeTicks(transaction, allExchangeTicks);
    return {
      ...written,
      rejected: rejects.index_ticks.length + rejects.exchange_ticks.length,
      unknownEvents: events.length,
      newest: findNewest(indexTicks, exchangeTicks),
      plausibleTicks,
    };
  };
  const { plausibleTicks, ...committed } = liveCoverage.rollBackOnError(() => warehouse.transaction(commit));
  return { ...committed, skippedTicks: liveCoverage.findSkippedTicks(plausibleTicks) };
}

/** Counts websocket events that this version does not know, each with a sample. */
export function commitUnknownEvents(warehouse: WarehouseWriter, events: readonly UnknownField[]): void {
  warehouse.transaction((transaction) => {
    for (const event of events) countUnknownEvent(transaction, event);
  });
}

function findNewest(...lists: readonly (readonly { readonly ts: Micros }[])[]): Micros | undefined {
  let newest: Micros | undefined;
  for (const ticks of lists) for (const { ts } of ticks) if (newest === undefined || ts > newest) newest = ts;
  return newest;
}

function decodeMessages(messages: readonly string[]) {
  const indexTicks: IndexTick[] = [];
  const exchangeTicks: ExchangeTick[] = [];
  const rejects: Record<LiveStream, Reject[]> = { index_ticks: [], exchange_ticks: [] };
  const events: UnknownField[] = [];
  const reader = new LiveEventReader();
  for (const message of messages) {
    const event = reader.read(message);
    switch (event.kind) {
      case "index_tick":
        indexTicks.push(event.tick);
        break;
      case "exchange_tick":
        exchangeTicks.push(event.tick);
        break;
      case "rejected_tick":
        rejects[event.stream].push(event.reject);
        break;
      case "unknown":
        events.push({ name: event.event, count: 1, sample: event.sample });
        break;
    }
  }
  return { indexTicks, exchangeTicks, rejects, fields: reader.unknownFields(), events };
}
