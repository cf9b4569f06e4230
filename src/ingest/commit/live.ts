import type { ExchangeTick, IndexTick, Reject, UnknownField } from "../../model/records.ts";
import { DEFAULT_CADENCE } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import {
  interruptFeed,
  type LiveFeed,
  type LiveFeedUpdate,
  missTicks,
  receiveTicks,
  updateFeed,
} from "../../rule/live-period.ts";
import {
  beginLiveSpans,
  clearLiveSpans,
  endLiveSpans,
  extendLiveSpans,
  type LiveSpan,
} from "../../warehouse/coverage/live-spans.ts";
import { applySnapshotChanges, readStoredSnapshots } from "../../warehouse/coverage/snapshot-coverage.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import { isBlocking } from "../../warehouse/sqlite/sqlite-errors.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { LiveEventReader } from "../decode/live-event.ts";
import { AHEAD_REASON, truncateRaw } from "../decode/page.ts";
import { MAX_CLOCK_SKEW_MICROS } from "../decode/read-page.ts";
import { SkippedTickDetector, type SkippedTicks } from "./skipped-ticks.ts";

/** A change of the live feed's state; absent properties have not changed. */
export interface LiveFeedChange extends LiveFeedUpdate {
  /** The feed starts: delete the live spans of an earlier run. */
  readonly isReset?: boolean;
  readonly startedSpans?: readonly LiveSpan[];
  readonly endedSpans?: readonly Omit<LiveSpan, "from">[];
  /** Ranges in which ticks of an exchange turned out to be missing. */
  readonly missed?: readonly ({ readonly exchangeId: string | null } & TimeRange)[];
}

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

/** What the ingest thread knows of the live feed. It changes only when a transaction is committed. */
export class LiveState {
  feed: LiveFeed = { cadence: DEFAULT_CADENCE, markets: null, exchanges: new Map() };
  readonly skips = new SkippedTickDetector();
}

const exchangeStream = "exchange_ticks";

export function commitLiveFeedChange(
  warehouse: WarehouseWriter,
  live: LiveState,
  change: LiveFeedChange,
): void {
  const { startedSpans = [], endedSpans = [], missed = [] } = change;
  const feed = updateFeed(live.feed, change);
  const { cadence } = feed;
  warehouse.transaction((transaction) => {
    if (change.isReset) clearLiveSpans(transaction);
    endLiveSpans(transaction, endedSpans);
    beginLiveSpans(transaction, startedSpans);
    for (const { exchangeId, from, to } of missed) {
      const subscription = { stream: exchangeStream, exchangeId, cadence } as const;
      applySnapshotChanges(transaction, subscription, missTicks({ from, to }, cadence));
    }
  });
  live.feed = feed;
}

type LiveStream = "index_ticks" | typeof exchangeStream;

/**
 * Commits a batch of websocket messages in one transaction. Exchange ticks settle their periods, index ticks nothing:
 * docs/decisions/live-ticks.md.
 */
export function commitLiveMessages(
  warehouse: WarehouseWriter,
  live: LiveState,
  messages: readonly string[],
): LiveCommitResult {
  const { cadence } = live.feed;
  try {
    const decoded = decodeMessages(messages);
    const { feed, plausibleTicks, written } = warehouse.transaction((transaction) => {
      const fit = rejectUnfit(transaction, decoded, cadence);
      const decided = decideLivePeriods(transaction, live.feed, fit.exchangeTicks);
      const batch = writeLiveMessages(transaction, live.feed, { ...decoded, ...fit });
      for (const [exchangeId, changes] of decided.changes)
        applySnapshotChanges(transaction, { stream: exchangeStream, exchangeId, cadence }, changes);
      return { feed: decided.feed, ...batch };
    });
    live.feed = feed;
    return { ...written, skippedTicks: live.skips.detect(plausibleTicks, cadence) };
  } catch (error) {
    // A batch that storage blocks is committed again, before any later one.
    if (!isBlocking(error)) live.feed = interruptFeed(live.feed);
    throw error;
  }
}

function decideLivePeriods(transaction: Transaction, feed: LiveFeed, ticks: readonly ExchangeTick[]) {
  const { now } = transaction;
  const plausible = ticks.filter(({ ts }) => ts <= now + MAX_CLOCK_SKEW_MICROS);
  return receiveTicks(feed, plausible, now, (exchangeId) =>
    readStoredSnapshots(transaction, { stream: exchangeStream, exchangeId }),
  );
}

function writeLiveMessages(
  transaction: Transaction,
  { cadence, markets }: LiveFeed,
  { indexTicks, exchangeTicks, rejects, fields, events }: Omit<DecodedMessages, "texts">,
) {
  for (const stream of ["index_ticks", "exchange_ticks"] as const) {
    storeRejects(transaction, stream, rejects[stream], null);
    countUnknownFields(transaction, stream, fields[stream]);
  }
  for (const event of events) countUnknownEvent(transaction, event);
  // A subscription may include more markets than are selected.
  const selected = markets ? exchangeTicks.filter(({ marketId }) => markets.has(marketId)) : exchangeTicks;
  const plausibleTicks = indexTicks.filter(({ ts }) => ts <= transaction.now + MAX_CLOCK_SKEW_MICROS);
  extendLiveSpans(transaction, plausibleTicks);
  const written = {
    // Within half a period of a REST row a tick is that row, stamped by another clock.
    indexTicks: writeRecords(transaction, "index_ticks", indexTicks, "live", cadence / 2),
    exchangeTicks: writeRecords(transaction, "exchange_ticks", selected, "live"),
    rejected: rejects.index_ticks.length + rejects.exchange_ticks.length,
    unknownEvents: events.length,
    newest: findNewest(indexTicks, selected),
  };
  return { plausibleTicks, written };
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
    exchangeTicks: keepFit("exchange_ticks", exchangeTicks, findAhead),
    rejects: {
      index_ticks: [...rejects.index_ticks, ...unfit.index_ticks],
      exchange_ticks: [...rejects.exchange_ticks, ...unfit.exchange_ticks],
    },
  };
}
