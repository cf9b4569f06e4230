import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import { countUnknownEvent, countUnknownFields, keepRejects } from "../../warehouse/rows/rejects.ts";
import { type Written, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";
import { EventReader } from "../decode/live-event.ts";
import type { Listening, Skip } from "./live-coverage.ts";

export interface LiveCommit {
  readonly indexTicks: Written;
  readonly exchangeTicks: Written;
  readonly rejected: number;
  readonly unknown: number;
  /** The newest moment among the ticks; undefined without any. */
  readonly newest: Micros | undefined;
  /** Where the feed seems to have left index ticks out. */
  readonly skips: readonly Skip[];
}

type LiveStream = "index_ticks" | "exchange_ticks";

/**
 * One batch of websocket messages, one transaction. Its index ticks are not settled: only REST proves that none is
 * missing. Exchange ticks have no history: what was heard is all there will be, and counts as observed.
 */
export function commitLive(
  warehouse: Warehouse,
  messages: readonly string[],
  listening: Listening,
): LiveCommit {
  const { indexTicks, exchangeTicks: heard, rejects, fields, events } = sort(messages);
  const exchangeTicks = listening.wanted(heard);
  const commit = (transaction: Transaction) => {
    for (const stream of ["index_ticks", "exchange_ticks"] as const) {
      keepRejects(transaction, stream, rejects[stream], null);
      countUnknownFields(transaction, stream, fields[stream]);
    }
    for (const event of events) countUnknownEvent(transaction, event);
    const written = {
      indexTicks: writeRecords(transaction, "index_ticks", indexTicks, "live"),
      exchangeTicks: writeRecords(transaction, "exchange_ticks", exchangeTicks, "live"),
    };
    const credible = listening.heardIndices(transaction, indexTicks);
    listening.heardExchanges(transaction, heard);
    return {
      ...written,
      rejected: rejects.index_ticks.length + rejects.exchange_ticks.length,
      unknown: events.length,
      newest: newestOf(indexTicks, exchangeTicks),
      credible,
    };
  };
  const { credible, ...committed } = listening.during(() => warehouse.transaction(commit));
  return { ...committed, skips: listening.skipsAmong(credible) };
}

/** What the feed said beside its ticks and this version does not know, counted, each with a sample. */
export function commitUnknownEvents(warehouse: Warehouse, events: readonly UnknownField[]): void {
  warehouse.transaction((transaction) => {
    for (const event of events) countUnknownEvent(transaction, event);
  });
}

function newestOf(...lists: readonly (readonly { readonly ts: Micros }[])[]): Micros | undefined {
  let newest: Micros | undefined;
  for (const ticks of lists) for (const { ts } of ticks) if (newest === undefined || ts > newest) newest = ts;
  return newest;
}

function sort(messages: readonly string[]) {
  const indexTicks: IndexTick[] = [];
  const exchangeTicks: ExchangeTick[] = [];
  const rejects: Record<LiveStream, Reject[]> = { index_ticks: [], exchange_ticks: [] };
  const events: UnknownField[] = [];
  const reader = new EventReader();
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
