import type { Micros } from "../model/instant.ts";
import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../model/records.ts";
import { countUnknownEvent, countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";
import { type Written, writeRecords } from "../warehouse/write-rows.ts";
import { decodeEvent } from "./decode-event.ts";

export interface LiveCommit {
  readonly indexTicks: Written;
  readonly exchangeTicks: Written;
  readonly rejected: number;
  readonly unknown: number;
  /** The newest moment among the ticks; undefined without any. */
  readonly newest: Micros | undefined;
}

type LiveStream = "index_ticks" | "exchange_ticks";

/** One batch of websocket messages, one transaction. Its rows are not settled: only REST proves that none is missing. */
export function commitLive(warehouse: Warehouse, messages: readonly string[]): LiveCommit {
  const { indexTicks, exchangeTicks, rejects, fields, events } = sort(messages);
  return warehouse.transaction((transaction) => {
    for (const stream of ["index_ticks", "exchange_ticks"] as const) {
      keepRejects(transaction, stream, rejects[stream], null);
      countUnknownFields(transaction, stream, fields[stream]);
    }
    for (const event of events) countUnknownEvent(transaction, event);
    const moments = [...indexTicks, ...exchangeTicks].map(({ ts }) => ts);
    return {
      indexTicks: writeRecords(transaction, "index_ticks", indexTicks, "live"),
      exchangeTicks: writeRecords(transaction, "exchange_ticks", exchangeTicks, "live"),
      rejected: rejects.index_ticks.length + rejects.exchange_ticks.length,
      unknown: events.length,
      newest: moments.length === 0 ? undefined : moments.reduce((a, b) => Math.max(a, b)),
    };
  });
}

function sort(messages: readonly string[]) {
  const indexTicks: IndexTick[] = [];
  const exchangeTicks: ExchangeTick[] = [];
  const rejects: Record<LiveStream, Reject[]> = { index_ticks: [], exchange_ticks: [] };
  const fields: Record<LiveStream, UnknownField[]> = { index_ticks: [], exchange_ticks: [] };
  const events: UnknownField[] = [];
  for (const message of messages) {
    const event = decodeEvent(message);
    switch (event.kind) {
      case "index_tick":
        indexTicks.push(event.tick);
        fields.index_ticks.push(...event.unknownFields);
        break;
      case "exchange_tick":
        exchangeTicks.push(event.tick);
        fields.exchange_ticks.push(...event.unknownFields);
        break;
      case "rejected_tick":
        rejects[event.stream].push(event.reject);
        break;
      case "unknown":
        events.push({ name: event.event, count: 1, sample: event.sample });
        break;
      default:
        // Greetings, pongs and confirmations are the feed's own business and say nothing worth keeping.
        break;
    }
  }
  return { indexTicks, exchangeTicks, rejects, fields, events };
}
