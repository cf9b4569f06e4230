import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { LiveEventReader } from "../decode/live-event.ts";
import { AHEAD_REASON, truncateRaw } from "../decode/page.ts";
import { MAX_CLOCK_SKEW_MICROS } from "../decode/scanned-page.ts";
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
 * Commits a batch of websocket messages in one transaction. Exchange ticks settle their periods, index ticks nothing:
 * docs/decisions/live-ticks.md.
 */
export function commitLiveMessages(
  warehouse: WarehouseWriter,
  messages: readonly string[],
  liveCoverage: LiveCoverage,
): LiveCommitResult {
  const decoded = decodeMessages(messages);
  const { fields, events } = decoded;
  const { cadence } = liveCoverage;
  const commit = (transaction: Transaction) => {
    const { indexTicks, allExchangeTicks, rejects } = rejectUnfit(transaction, decoded, cadence);
    const exchangeTicks = liveCoverage.filterSelected(allExchangeTicks);
    for (const stream of ["index_ticks", "exchange_ticks"] as const) {
      storeRejects(transaction, stream, rejects[stream], null);
      countUnknownFields(transaction, stream, fields[stream]);
    }
    for (const event of events) countUnknownEvent(transaction, event);
    const written = {
      // Within half a period of a REST row a tick is that row, stamped by another clock.
      indexTicks: writeRecords(transaction, "index_ticks", indexTicks, "live", cadence / 2),
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

interface DecodedMessages {
  readonly indexTicks: readonly IndexTick[];
  readonly exchangeTicks: readonly ExchangeTick[];
  /** The messages of the ticks, in the same order. */
  readonly texts: Readonly<Record<LiveStream, readonly string[]>>;
  readonly rejects: Readonly<Record<LiveStream, readonly Reject[]>>;
  readonly fields: Readonly<Record<LiveStream, readonly UnknownField[]>>;
  readonly events: readonly UnknownField[];
}

function decodeMessages(messages: readonly string[]): DecodedMessages {
  const indexTicks: IndexTick[] = [];
  const exchangeTicks: ExchangeTick[] = [];
  const texts: Record<LiveStream, string[]> = { index_ticks: [], exchange_ticks: [] };
  const rejects: Record<LiveStream, Reject[]> = { index_ticks: [], exchange_ticks: [] };
  const events: UnknownField[] = [];
  const reader = new LiveEventReader();
  for (const message of messages) {
    const event = reader.read(message);
    switch (event.kind) {
      case "index_tick":
        indexTicks.push(event.tick);
        texts.index_ticks.push(message);
        break;
      case "exchange_tick":
        exchangeTicks.push(event.tick);
        texts.exchange_ticks.push(message);
        break;
      case "rejected_tick":
        rejects[event.stream].push(event.reject);
        break;
      case "unknown":
        events.push({ name: event.event, count: 1, sample: event.sample });
        break;
    }
  }
  return { indexTicks, exchangeTicks, texts, rejects, fields: reader.unknownFields(), events };
}

/** A tick of such an index would select it for good: REST serves what it has missed once it lists it. */
const UNLISTED_REASON = "REST does not list the index";
const listedSql =
  "SELECT 1 FROM targets w JOIN series s ON s.series = w.series WHERE s.index_type = 'LX' LIMIT 1";

/** Moves ticks from the future, and of liquid indices that are not among those of REST, to the rejects. */
function rejectUnfit(
  transaction: Transaction,
  { indexTicks, exchangeTicks, texts, rejects }: DecodedMessages,
  cadence: Micros,
) {
  const latest = transaction.now + cadence + MAX_CLOCK_SKEW_MICROS;
  const unfit: Record<LiveStream, Reject[]> = { index_ticks: [], exchange_ticks: [] };
  const keepFit = <T extends { readonly ts: Micros }>(
    stream: LiveStream,
    ticks: readonly T[],
    findReason: (tick: T) => string | undefined,
  ) => {
    if (!ticks.some((tick) => findReason(tick) !== undefined)) return ticks;
    return ticks.filter((tick, at) => {
      const reason = findReason(tick);
      if (reason !== undefined) unfit[stream].push({ reason, raw: truncateRaw(texts[stream][at] ?? "") });
      return reason === undefined;
    });
  };
  const isUnlisted = ({ indexType, indexId }: IndexTick) =>
    indexType === "LX" &&
    transaction.dictionary.findSeriesKey(indexType, indexId) === undefined &&
    transaction.findRow(listedSql, []) !== undefined;
  const findAhead = ({ ts }: { readonly ts: Micros }) => (ts > latest ? AHEAD_REASON : undefined);
  return {
    indexTicks: keepFit(
      "index_ticks",
      indexTicks,
      (tick) => findAhead(tick) ?? (isUnlisted(tick) ? UNLISTED_REASON : undefined),
    ),
    allExchangeTicks: keepFit("exchange_ticks", exchangeTicks, findAhead),
    rejects: {
      index_ticks: [...rejects.index_ticks, ...unfit.index_ticks],
      exchange_ticks: [...rejects.exchange_ticks, ...unfit.exchange_ticks],
    },
  };
}
