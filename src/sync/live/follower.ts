import type { LiveCommitResult } from "../../ingest/commit/live.ts";
import { MAX_FRESH_AGE_MS } from "../../ingest/decode/read-page.ts";
import { Failure, failureCode } from "../../model/failure.ts";
import type { UnknownField } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import type { Cancel } from "../../runtime/clock.ts";
import { followFeed, type UnknownMessage } from "../../service/live/feed.ts";
import { MAX_BATCH_TICKS } from "../../service/live/message-queue.ts";
import type {
  ExchangeSubscription,
  FeedMessage,
  SubscriptionStates,
} from "../../service/live/subscription-states.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import { fetchPage } from "../fetch/fetch-records.ts";
import type { SubscriptionCoverage } from "./subscription-coverage.ts";

/** Short enough that a tick is on disk within 100 ms, commit included. */
const BATCH_INTERVAL_MS = 40;
const MAX_COMMITS_IN_FLIGHT = 3;

export interface LiveFollowerOptions {
  readonly wsUrl: string;
  readonly subscriptions: SubscriptionStates;
  readonly coverage: SubscriptionCoverage;
  /** `lagMs`: from the batch's first message to its commit, at most. */
  readonly onCommit: (commit: LiveCommitResult, lagMs: number) => void;
  /** Messages other than ticks. */
  readonly onFeedMessage: (message: FeedMessage) => void;
  /** Called after live spans changed: the schedule of REST polls depends on them. */
  readonly onCoverageChange: () => void;
}

/** Stores the ticks of the live feed and tracks what it covers. Runs until the context's signal aborts. */
export async function followLiveFeed(context: SyncContext, options: LiveFollowerOptions): Promise<void> {
  const { client, clock, random, settings, ingest, log, signal } = context;
  const { coverage } = options;
  /** Oldest first. */
  const commits: Promise<void>[] = [];
  const commitTicks = async (texts: readonly string[], startedAt: number) => {
    const commit = await ingest.call("commitLiveMessages", texts, signal);
    options.onCommit(commit, clock.monotonic() - startedAt);
  };
  const flush = () => Promise.all(commits.splice(0));
  let pausedAt = Number.NEGATIVE_INFINITY;
  const unknown = createUnknownMessageStore(context);
  const messages = followFeed({
    wsUrl: options.wsUrl,
    client,
    subscriptions: options.subscriptions,
    clock,
    random,
    log,
    onUnknown: unknown.add,
    refreshSeconds: settings.refreshSeconds,
    isMarketQuiet: (subscription, lastTickTs) => checkQuietMarket(context, subscription, lastTickTs),
    signal,
  });
  try {
    for await (const message of messages) {
      if (message.kind === "update") {
        const startedAt = Math.max(pausedAt, clock.monotonic() - BATCH_INTERVAL_MS);
        const commit = commitTicks(message.texts, startedAt);
        // Whoever waits for it gets the failure.
        commit.catch(() => {});
        commits.push(commit);
        if (commits.length > MAX_COMMITS_IN_FLIGHT) await commits.shift();
        pausedAt = clock.monotonic();
        // Meanwhile ticks wait in the feed, whose limits hold: they are committed together.
        if (message.texts.length < MAX_BATCH_TICKS)
          await clock.sleep(BATCH_INTERVAL_MS, signal).catch(() => {});
        continue;
      }
      options.onFeedMessage(message);
      logMessage(message, log);
      coverage.apply(message, serviceNow(context));
      if (await coverage.commit(flush)) options.onCoverageChange();
    }
    await flush();
    await unknown.flush();
  } finally {
    // The next feed subscribes again: all live spans of this one have ended.
    coverage.apply(
      { kind: "disconnected", reason: "stopped", since: serviceNow(context) },
      serviceNow(context),
    );
  }
}

function logMessage(message: Exclude<FeedMessage, { kind: "update" }>, log: SyncContext["log"]): void {
  switch (message.kind) {
    case "parked":
    case "unconfirmed":
      log.warn({ ...message }, "live subscription unavailable, polling REST");
      return;
    case "gap":
      log.warn({ dropped: message.dropped }, "live ticks dropped, fetching from REST");
      return;
    default:
      log.debug({ ...message }, "live feed message");
  }
}

/** Thousands of unknown messages may arrive: store and log them together. */
const UNKNOWN_FLUSH_INTERVAL_MS = 10_000;
/** Bounds the table: messages with further names count as `OTHER_NAMES`. */
const MAX_UNKNOWN_NAMES = 100;
const OTHER_NAMES = "(others)";

/** Counts messages that this version does not know and stores the first of each kind as a sample. */
function createUnknownMessageStore({ clock, ingest, log, signal }: SyncContext) {
  const names = new Set<string>();
  let pending = new Map<string, UnknownField>();
  let cancelTimer: Cancel | undefined;
  let lastStore: Promise<unknown> = Promise.resolve();
  const store = () => {
    cancelTimer?.();
    cancelTimer = undefined;
    const events = [...pending.values()];
    pending = new Map();
    if (events.length === 0) return;
    const counts = Object.fromEntries(events.map(({ name, count }) => [name, count]));
    log.warn({ events: counts }, "unknown live messages received");
    const storing = ingest.call("commitUnknownEvents", events, signal).catch((error: unknown) => {
      log.warn({ error: String(error) }, "storing unknown messages failed");
    });
    lastStore = Promise.all([lastStore, storing]);
  };
  return {
    add({ event, sample }: UnknownMessage): void {
      if (names.size < MAX_UNKNOWN_NAMES) names.add(event);
      const name = names.has(event) ? event : OTHER_NAMES;
      const known = pending.get(name);
      pending.set(name, { name, sample: known?.sample ?? sample, count: (known?.count ?? 0) + 1 });
      cancelTimer ??= clock.after(UNKNOWN_FLUSH_INTERVAL_MS, store);
    },
    /** Never throws: if storage fails, the commits of ticks report it. */
    async flush(): Promise<void> {
      store();
      await lastStore;
    },
  };
}

/**
 * True if REST has no tick newer than the last one received: then the market is quiet. Throws if the response
 * is inconclusive.
 */
export async function checkQuietMarket(
  { client, signal }: Pick<SyncContext, "client" | "signal">,
  subscription: ExchangeSubscription,
  lastTickTs: Micros | undefined,
): Promise<boolean> {
  const { exchangeId, marketId } = subscription;
  const request = {
    // The first page is enough: the service refreshes all ticks of a subscription together.
    query: { exchangeId, marketId },
    signal,
    maxAttempts: 2,
  };
  const { records, rawCount, ageMs } = await fetchPage(client, "exchange_ticks", request).catch((error) => {
    if (failureCode(error) === "null_list") return { records: [], rawCount: 0, ageMs: 0 };
    throw error;
  });
  const newest = records.reduce((latest, { ts }) => Math.max(latest, ts), 0);
  if (newest > (lastTickTs ?? Number.POSITIVE_INFINITY)) return false;
  // A cached response may lack newer ticks. If the feed received ticks before, REST must have some too.
  if (ageMs > MAX_FRESH_AGE_MS) throw inconclusiveFailure("the response comes from a cache");
  if (newest > 0) return lastTickTs !== undefined;
  if (rawCount > 0 || lastTickTs !== undefined) throw inconclusiveFailure("the response has no tick at all");
  return true;
}

function inconclusiveFailure(why: string): Failure {
  return new Failure(`cannot determine whether the market is quiet: ${why}`, { code: "doubtful_list" });
}
