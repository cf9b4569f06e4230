import type { LiveFeedChange } from "../../ingest/commit/live.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import {
  type FeedMessage,
  type Subscription,
  subscriptionKey,
} from "../../service/live/subscription-states.ts";
import type { LiveSpan } from "../../warehouse/coverage/live-spans.ts";
import type { SyncContext } from "../context/context.ts";
import type { DesiredSubscriptions } from "./desired-subscriptions.ts";

interface SubscriptionSpan {
  readonly subscription: Subscription;
  /** The start of its live span; undefined: ticks are missing or may be. */
  liveSince: Micros | undefined;
  /** The service answered 404: no ticks exist. */
  isAbsent: boolean;
  readonly exchange: ExchangeSpan | undefined;
}

interface ExchangeSpan {
  readonly exchangeId: string | null;
  readonly keys: readonly string[];
  /** Subscriptions without a live span. */
  missingCount: number;
  /** The newest start among its subscriptions; 0: none has a live span. */
  liveSince: Micros;
}

/**
 * Tracks the live span of each subscription, which decides what REST has to poll; changes go to the ledger.
 * Applies feed messages in order with the ticks; `SubscriptionStates` is ahead of the feed's reader.
 */
export class SubscriptionCoverage {
  readonly #cadence: Micros;
  #spans = new Map<string, SubscriptionSpan>();
  #exchanges = new Map<string | null, ExchangeSpan>();
  #selectedMarkets: ReadonlySet<string> | undefined;
  /** As last committed to the ledger. */
  readonly #reportedSpans = new Map<string, LiveSpan>();
  #haveExchangesChanged = true;
  #isFirstReport = true;
  #changedKeys = new Set<string>();
  #missed: ({ readonly exchangeId: string | null } & TimeRange)[] = [];

  constructor(cadence: Micros) {
    this.#cadence = cadence;
  }

  /** Replaces the subscriptions; those that remain keep their state. */
  setDesired({ indices, exchanges, selection }: DesiredSubscriptions): void {
    const before = this.#spans;
    this.#spans = new Map();
    this.#exchanges = new Map();
    this.#selectedMarkets = selection.markets;
    const add = (subscription: Subscription, exchange: ExchangeSpan | undefined) => {
      const key = subscriptionKey(subscription);
      const known = before.get(key);
      const { liveSince, isAbsent } = known ?? { liveSince: undefined, isAbsent: false };
      this.#spans.set(key, { subscription, liveSince, isAbsent, exchange });
      if (exchange) this.#addToExchange(exchange, liveSince, isAbsent);
    };
    for (const subscription of indices) add(subscription, undefined);
    for (const { exchangeId, subscriptions } of exchanges) {
      const exchange = {
        exchangeId,
        keys: subscriptions.map(subscriptionKey),
        missingCount: 0,
        liveSince: 0,
      };
      this.#exchanges.set(exchangeId, exchange);
      for (const subscription of subscriptions) add(subscription, exchange);
    }
    for (const key of [...before.keys(), ...this.#spans.keys()]) this.#changedKeys.add(key);
    this.#haveExchangesChanged = true;
  }

  get subscriptions(): readonly Subscription[] {
    return [...this.#spans.values()].map(({ subscription }) => subscription);
  }

  /** Every subscription has a live span, or the service has no ticks for it. */
  get isComplete(): boolean {
    for (const state of this.#spans.values()) if (isMissing(state)) return false;
    return true;
  }

  /** Undefined: the live feed does not cover the index. */
  indexLiveSince(indexType: string, indexId: string): Micros | undefined {
    return this.#indexSpan(indexType, indexId)?.liveSince;
  }

  /** The subscription to the index, or to all indices of its type. */
  indexSubscription(indexType: string, indexId: string): Subscription | undefined {
    return this.#indexSpan(indexType, indexId)?.subscription;
  }

  #indexSpan(indexType: string, indexId: string): SubscriptionSpan | undefined {
    const single = this.#spans.get(subscriptionKey({ source: "index", indexType, indexId }));
    return single ?? this.#spans.get(subscriptionKey({ source: "index", indexType }));
  }

  /** Undefined: the live feed does not cover the exchange (null: all exchanges). */
  exchangeLiveSince(exchangeId: string | null): Micros | undefined {
    const exchange = this.#exchanges.get(exchangeId);
    return exchange && isExchangeComplete(exchange) ? exchange.liveSince : undefined;
  }

  /** The keys of its subscriptions (null: of all exchanges). */
  exchangeSubscriptions(exchangeId: string | null): readonly string[] {
    return this.#exchanges.get(exchangeId)?.keys ?? [];
  }

  /** `now` is by the service's clock. */
  apply(message: Exclude<FeedMessage, { kind: "update" }>, now: Micros): void {
    switch (message.kind) {
      case "subscribed":
        this.#setLiveSince(message.subscription, message.at, false);
        return;
      case "parked":
        this.#setLiveSince(message.subscription, undefined, message.code === "404");
        return;
      case "unconfirmed":
        if (message.reason === "silent") this.#reportMissed(message.subscription, message.missingSince, now);
        this.#setLiveSince(message.subscription, undefined, false);
        return;
      case "disconnected":
        for (const { subscription, isAbsent } of this.#spans.values())
          this.#setLiveSince(subscription, undefined, isAbsent);
        return;
      case "gap":
        for (const { subscription, liveSince, isAbsent } of this.#spans.values()) {
          if (liveSince === undefined) continue;
          this.#reportMissed(subscription, message.from, message.to);
          this.#setLiveSince(subscription, message.to, isAbsent);
        }
        return;
      default:
        return;
    }
  }

  /** Hands over the changes since the last call that succeeded. Returns whether there were any. One call at a time. */
  async report(commit: (change: LiveFeedChange) => Promise<unknown>): Promise<boolean> {
    const [keys, missed, haveExchangesChanged] = [
      this.#changedKeys,
      this.#missed,
      this.#haveExchangesChanged,
    ];
    this.#changedKeys = new Set();
    this.#missed = [];
    this.#haveExchangesChanged = false;
    const { started, ended } = this.#findSpanChanges(keys);
    const changeCount = started.size + ended.size + missed.length;
    if (!this.#isFirstReport && !haveExchangesChanged && changeCount === 0) return false;
    try {
      await commit({
        isReset: this.#isFirstReport,
        startedSpans: [...started.values()],
        endedSpans: [...ended.values()],
        missed,
        cadence: this.#cadence,
        ...(haveExchangesChanged
          ? { exchanges: this.#completeExchanges(), markets: this.#selectedMarkets ?? null }
          : {}),
      });
    } catch (error) {
      for (const key of keys) this.#changedKeys.add(key);
      this.#missed = [...missed, ...this.#missed];
      this.#haveExchangesChanged ||= haveExchangesChanged;
      throw error;
    }
    this.#isFirstReport = false;
    for (const [key, span] of started) this.#reportedSpans.set(key, span);
    for (const key of ended.keys()) this.#reportedSpans.delete(key);
    return true;
  }

  /** Compares the live spans of indices with those that were committed last. */
  #findSpanChanges(keys: ReadonlySet<string>) {
    const started = new Map<string, LiveSpan>();
    const ended = new Map<string, LiveSpan>();
    for (const key of keys) {
      const reported = this.#reportedSpans.get(key);
      const span = this.#liveSpanOf(key);
      if (reported?.from === span?.from) continue;
      if (span) started.set(key, span);
      else if (reported) ended.set(key, reported);
    }
    return { started, ended };
  }

  #completeExchanges(): NonNullable<LiveFeedChange["exchanges"]> {
    return [...this.#exchanges.values()]
      .filter(isExchangeComplete)
      .map(({ exchangeId, liveSince }) => ({ exchangeId, since: liveSince }));
  }

  #liveSpanOf(key: string): LiveSpan | undefined {
    const state = this.#spans.get(key);
    if (state?.subscription.source !== "index" || state.liveSince === undefined) return undefined;
    const { indexType = "", indexId } = state.subscription;
    return { indexType, indexId, from: state.liveSince };
  }

  #setLiveSince(subscription: Subscription, liveSince: Micros | undefined, isAbsent: boolean): void {
    const key = subscriptionKey(subscription);
    const state = this.#spans.get(key);
    // It may have been unsubscribed meanwhile.
    if (!state) return;
    const { exchange } = state;
    const before = exchange && isExchangeComplete(exchange) ? exchange.liveSince : undefined;
    if (exchange && isMissing(state)) exchange.missingCount--;
    state.liveSince = liveSince;
    state.isAbsent = isAbsent;
    if (exchange) this.#addToExchange(exchange, liveSince, isAbsent);
    if (exchange && before !== (isExchangeComplete(exchange) ? exchange.liveSince : undefined))
      this.#haveExchangesChanged = true;
    this.#changedKeys.add(key);
  }

  #addToExchange(exchange: ExchangeSpan, liveSince: Micros | undefined, isAbsent: boolean): void {
    if (liveSince === undefined && !isAbsent) exchange.missingCount++;
    exchange.liveSince = Math.max(exchange.liveSince, liveSince ?? 0);
  }

  /** Periods with missing ticks are to be retracted: the exchange's other subscriptions may have settled them. */
  #reportMissed(subscription: Subscription, missingSince: Micros | undefined, to: Micros): void {
    const state = this.#spans.get(subscriptionKey(subscription));
    if (!state?.exchange) return;
    const { liveSince } = state;
    // The period in which the live span began is polled.
    const from = missingSince ?? (liveSince === undefined ? undefined : liveSince + this.#cadence);
    if (from === undefined) return;
    this.#missed.push({ exchangeId: state.exchange.exchangeId, from, to });
  }
}

function isMissing({ liveSince, isAbsent }: SubscriptionSpan): boolean {
  return liveSince === undefined && !isAbsent;
}

/** False if all its subscriptions are absent: then REST has to confirm that there are no ticks. */
function isExchangeComplete({ missingCount, liveSince, keys }: ExchangeSpan): boolean {
  return missingCount === 0 && liveSince > 0 && keys.length > 0;
}

/**
 * Commits coverage changes to the ledger, one after the other: two callers report changes, and if storage
 * delays a call, an older change must not be committed last.
 */
export function createCoverageCommitter({ ingest, signal }: SyncContext, coverage: SubscriptionCoverage) {
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** `flush` commits the ticks that came before. Returns whether there were changes. */
    commit(flush?: () => Promise<unknown>): Promise<boolean> {
      const report = async (change: LiveFeedChange) => {
        await flush?.();
        await ingest.call("commitLiveFeedChange", change, signal);
      };
      const committed = last.then(() => coverage.report(report));
      last = committed.catch(() => {});
      return committed;
    },
  };
}

export type CoverageCommitter = ReturnType<typeof createCoverageCommitter>;
