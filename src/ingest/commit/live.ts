import type { ExchangeTick, IndexTick } from "../../model/records.ts";
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
import {
  planSnapshotChanges,
  readStoredSnapshots,
  type SnapshotPlan,
  writeSnapshotChanges,
} from "../../warehouse/coverage/snapshot-coverage.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { planRecords } from "../../warehouse/rows/row-plan.ts";
import { writeRows } from "../../warehouse/rows/row-writer.ts";
import { isBlocking } from "../../warehouse/sqlite/sqlite-errors.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { AHEAD_REASON, truncateRaw } from "../decode/decode-page.ts";
import { decodeLiveMessages, type LiveMessages, type LiveTicks } from "../decode/live-event.ts";
import { MAX_CLOCK_SKEW_MICROS } from "../decode/read-page.ts";
import { findNewestUntil } from "./snapshot.ts";

/** A change of the live feed's state; absent properties have not changed. */
export interface LiveFeedChange extends LiveFeedUpdate {
  /** The feed starts: delete the live spans of an earlier run. */
  readonly isReset?: boolean;
  readonly startedSpans?: readonly LiveSpan[];
  readonly endedSpans?: readonly Omit<LiveSpan, "from">[];
  /** Ranges in which ticks of an exchange turned out to be missing. */
  readonly missed?: readonly ({ readonly exchangeId: string | null } & TimeRange)[];
}

export type LiveCommitResult = ReturnType<typeof commitLiveMessages>;

/** What the ingest thread knows of the live feed. It changes only when a transaction is committed. */
export class LiveState {
  feed: LiveFeed = { cadence: DEFAULT_CADENCE, markets: null, exchanges: new Map() };
  readonly skips = new SkippedTickDetector();
}

const exchangeStream = "exchange_ticks";

export function commitLiveFeedChange(warehouse: WarehouseWriter, live: LiveState, change: LiveFeedChange) {
  const { startedSpans = [], endedSpans = [], missed = [] } = change;
  const feed = updateFeed(live.feed, change);
  const { cadence } = feed;
  warehouse.transaction((transaction) => {
    const plans = [...Map.groupBy(missed, ({ exchangeId }) => exchangeId)].map(([exchangeId, ranges]) => {
      const changes = ranges.flatMap((range) => missTicks(range, cadence));
      return planSnapshotChanges(transaction, { stream: exchangeStream, exchangeId, cadence }, changes);
    });
    if (change.isReset) clearLiveSpans(transaction);
    endLiveSpans(transaction, endedSpans);
    beginLiveSpans(transaction, startedSpans);
    for (const plan of plans) writeSnapshotChanges(transaction, plan);
  });
  live.feed = feed;
}

/**
 * Commits a batch of websocket messages in one transaction. Exchange ticks settle their periods, index ticks nothing:
 * docs/decisions/live-ticks.md.
 */
export function commitLiveMessages(warehouse: WarehouseWriter, live: LiveState, messages: readonly string[]) {
  const { cadence } = live.feed;
  try {
    const decoded = decodeLiveMessages(messages);
    const { feed, index, written } = warehouse.transaction((transaction) => {
      const read = readLiveMessages(transaction, live.feed, decoded);
      const decided = decideLivePeriods(transaction, live.feed, read.fit.exchange_ticks.ticks);
      return {
        feed: decided.feed,
        index: read.index,
        written: writeLiveMessages(transaction, read, decided.plans),
      };
    });
    live.feed = feed;
    /** `skippedTicks`: where the feed seems to have skipped index ticks. */
    return { ...written, skippedTicks: live.skips.detect(index, cadence) };
  } catch (error) {
    // A batch that storage blocks is committed again, before any later one.
    if (!isBlocking(error)) live.feed = interruptFeed(live.feed);
    throw error;
  }
}

/** What may be stored of a batch, and how it meets what is stored. */
function readLiveMessages(transaction: Transaction, { cadence, markets }: LiveFeed, decoded: LiveMessages) {
  const fit = rejectUnfit(transaction, decoded, cadence);
  const { index_ticks: index, exchange_ticks: exchange } = fit;
  // A subscription may include more markets than are selected.
  const selected = markets ? exchange.ticks.filter(({ marketId }) => markets.has(marketId)) : exchange.ticks;
  return {
    fit,
    /** Those that are not from the future. */
    index: index.ticks.filter(({ ts }) => ts <= transaction.now + MAX_CLOCK_SKEW_MICROS),
    newest: findNewestUntil(Number.POSITIVE_INFINITY, index.ticks, selected),
    // Within half a period of a REST row a tick is that row, stamped by another clock.
    indexPlan: planRecords(transaction, "index_ticks", index.ticks, "live", cadence / 2),
    exchangePlan: planRecords(transaction, exchangeStream, selected, "live"),
  };
}

function decideLivePeriods(transaction: Transaction, feed: LiveFeed, ticks: readonly ExchangeTick[]) {
  const { now } = transaction;
  const { cadence } = feed;
  const plausible = ticks.filter(({ ts }) => ts <= now + MAX_CLOCK_SKEW_MICROS);
  const decided = receiveTicks(feed, plausible, now, (exchangeId) =>
    readStoredSnapshots(transaction, { stream: exchangeStream, exchangeId }),
  );
  const plans = [...decided.changes].map(([exchangeId, changes]) =>
    planSnapshotChanges(transaction, { stream: exchangeStream, exchangeId, cadence }, changes),
  );
  return { feed: decided.feed, plans };
}

function writeLiveMessages(
  transaction: Transaction,
  { fit, index, newest, indexPlan, exchangePlan }: ReturnType<typeof readLiveMessages>,
  plans: readonly SnapshotPlan[],
) {
  for (const stream of ["index_ticks", "exchange_ticks"] as const) {
    storeRejects(transaction, stream, fit[stream].rejects, null);
    countUnknownFields(transaction, stream, fit[stream].fields);
  }
  for (const event of fit.events) countUnknownEvent(transaction, event);
  extendLiveSpans(transaction, index);
  const written = {
    indexTicks: writeRows(transaction, indexPlan),
    exchangeTicks: writeRows(transaction, exchangePlan),
    rejected: fit.index_ticks.rejects.length + fit.exchange_ticks.rejects.length,
    unknownEvents: fit.events.length,
    /** The newest timestamp of the ticks; undefined without any. */
    newest,
  };
  for (const plan of plans) writeSnapshotChanges(transaction, plan);
  return written;
}

/** A tick of such an index would select it for good: REST serves what it has missed once it lists it. */
const UNLISTED_REASON = "REST does not list the index";
const listedSql =
  "SELECT 1 FROM targets w JOIN series s ON s.series = w.series WHERE s.index_type = 'LX' LIMIT 1";

/** Moves ticks from the future, and of liquid indices that are not among those of REST, to the rejects. */
function rejectUnfit(transaction: Transaction, messages: LiveMessages, cadence: Micros): LiveMessages {
  const latest = transaction.now + cadence + MAX_CLOCK_SKEW_MICROS;
  const keepFit = <R>(live: LiveTicks<R>, findReason: (tick: R) => string | undefined): LiveTicks<R> => {
    const rejects = [...live.rejects];
    const ticks = live.ticks.filter((tick, at) => {
      const reason = findReason(tick);
      if (reason !== undefined) rejects.push({ reason, raw: truncateRaw(live.texts[at] ?? "") });
      return reason === undefined;
    });
    return { ...live, ticks, rejects };
  };
  const isUnlisted = ({ indexType, indexId }: IndexTick) =>
    indexType === "LX" &&
    transaction.dictionary.findSeriesKey(indexType, indexId) === undefined &&
    transaction.findRow(listedSql, []) !== undefined;
  const findAhead = ({ ts }: { readonly ts: Micros }) => (ts > latest ? AHEAD_REASON : undefined);
  return {
    ...messages,
    index_ticks: keepFit(
      messages.index_ticks,
      (tick) => findAhead(tick) ?? (isUnlisted(tick) ? UNLISTED_REASON : undefined),
    ),
    exchange_ticks: keepFit(messages.exchange_ticks, findAhead),
  };
}

/**
 * Two consecutive live ticks of an index (at `after` and `at`) between which at least one tick is missing.
 */
export interface SkippedTicks {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

interface TickProgress extends Pick<IndexTick, "indexType" | "indexId"> {
  /** The newest live tick of the index since the start. */
  ts: Micros;
  /** Set if the last step was too long; reported at the next tick, since skipped ticks may arrive late. */
  pendingSkip: SkippedTicks | undefined;
}

/** A longer step between two ticks means that one was skipped. */
export const MAX_STEP_PERIODS = 1.5;

/** Finds ticks that the feed skipped silently, by the time between consecutive ticks of each index. */
class SkippedTickDetector {
  /** By index type and index id. */
  readonly #progress = new Map<string, TickProgress>();

  listNewestTicks() {
    return [...this.#progress.values()].map(({ indexType, indexId, ts }) => ({ indexType, indexId, ts }));
  }

  /** Returns the skips that no late tick filled before the next tick. Call it after the batch is committed. */
  detect(ticks: readonly IndexTick[], cadence: Micros): SkippedTicks[] {
    const skips: SkippedTicks[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      const name = `${indexType} ${indexId}`;
      const progress = this.#progress.get(name);
      if (!progress) this.#progress.set(name, { indexType, indexId, ts, pendingSkip: undefined });
      else if (ts > progress.ts) {
        if (progress.pendingSkip) skips.push(progress.pendingSkip);
        const { ts: after } = progress;
        // Allocates nothing for the usual case, in which none was skipped.
        progress.pendingSkip = hasSkipped(after, ts, cadence)
          ? { indexType, indexId, after, at: ts }
          : undefined;
        progress.ts = ts;
      } else if (progress.pendingSkip && ts > progress.pendingSkip.after && ts < progress.pendingSkip.at) {
        const parts = [
          { ...progress.pendingSkip, at: ts },
          { ...progress.pendingSkip, after: ts },
        ];
        progress.pendingSkip = parts.find(({ after, at }) => hasSkipped(after, at, cadence));
      }
    }
    return skips;
  }
}

function hasSkipped(after: Micros, at: Micros, cadence: Micros): boolean {
  return at - after > MAX_STEP_PERIODS * cadence;
}
