import { isDeepStrictEqual } from "node:util";
import type { LiveFeedChange } from "../../ingest/commit/live.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { LiveFeedUpdate } from "../../rule/live-period.ts";
import {
  type FeedMessage,
  type Subscription,
  subscriptionKey,
} from "../../service/live/subscription-states.ts";
import type { LiveSpan } from "../../warehouse/coverage/live-spans.ts";
import type { DesiredSubscriptions } from "./desired-subscriptions.ts";

interface SubscriptionSpan {
  readonly subscription: Subscription;
  /** The start of its live span; undefined: ticks are missing or may be. */
  liveSince: Micros | undefined;
  /** The service answered 404: no ticks exist. */
  isAbsent: boolean;
}

type Commit = (change: LiveFeedChange) => Promise<unknown>;

/**
 * Tracks the live span of each subscription, which decides what REST has to poll; changes go to the ledger.
 * Applies feed messages in order with the ticks; `SubscriptionStates` is ahead of the feed's reader.
 */
export class SubscriptionCoverage {
  readonly #cadence: Micros;
  readonly #commit: Commit;
  #lastCommit: Promise<unknown> = Promise.resolve();
  #spans = new Map<string, SubscriptionSpan>();
  /** The keys of the subscriptions of each exchange (null: of all exchanges). */
  #exchanges = new Map<string | null, readonly string[]>();
  #selectedMarkets: ReadonlySet<string> | undefined;
  /** As last committed to the ledger; undefined: nothing yet. */
  #reported: { readonly spans: ReadonlyMap<string, LiveSpan>; readonly feed: LiveFeedUpdate } | undefined;
  #missed: ({ readonly exchangeId: string | null } & TimeRange)[] = [];

  constructor(cadence: Micros, commit: Commit) {
    this.#cadence = cadence;
    this.#commit = commit;
  }

  /** Replaces the subscriptions; those that remain keep their state. */
  setDesired({ indices, exchanges, selection }: DesiredSubscriptions): void {
    const before = this.#spans;
    const all = [...indices, ...exchanges.flatMap(({ subscriptions }) => subscriptions)];
    this.#spans = new Map(
      all.map((subscription) => {
        const key = subscriptionKey(subscription);
        return [key, before.get(key) ?? { subscription, liveSince: undefined, isAbsent: false }];
      }),
    );
    this.#exchanges = new Map(
      exchanges.map(({ exchangeId, subscriptions }) => [exchangeId, subscriptions.map(subscriptionKey)]),
    );
    this.#selectedMarkets = selection.markets;
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

  /**
   * Undefined: the live feed does not cover the exchange (null: all exchanges). Nor does it if all its subscriptions are absent: then
   * REST has to confirm that there are no ticks.
   */
  exchangeLiveSince(exchangeId: string | null): Micros | undefined {
    const states = this.exchangeSubscriptions(exchangeId).flatMap((key) => this.#spans.get(key) ?? []);
    if (states.some(isMissing)) return undefined;
    const starts = states.flatMap(({ liveSince }) => liveSince ?? []);
    return starts.length === 0 ? undefined : Math.max(...starts);
  }

  exchangeSubscriptions(exchangeId: string | null): readonly string[] {
    return this.#exchanges.get(exchangeId) ?? [];
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

  /**
   * Commits the changes since the last commit, one call after the other: if storage delays a call, an older change must not be
   * committed last. `flush` commits the ticks that came before. Returns whether there were changes.
   */
  commit(flush?: () => Promise<unknown>): Promise<boolean> {
    const committed = this.#lastCommit.then(() => this.#commitChanges(flush));
    this.#lastCommit = committed.catch(() => {});
    return committed;
  }

  async #commitChanges(flush?: () => Promise<unknown>): Promise<boolean> {
    const { spans: known, feed: knownFeed } = this.#reported ?? { spans: new Map<string, LiveSpan>() };
    const [spans, feed, missed] = [this.#liveSpans(), this.#liveFeed(), this.#missed];
    const startedSpans = [...spans].filter(([key, { from }]) => known.get(key)?.from !== from);
    const endedSpans = [...known].filter(([key]) => !spans.has(key));
    const isFeedChanged = !isDeepStrictEqual(feed, knownFeed);
    if (!isFeedChanged && startedSpans.length + endedSpans.length + missed.length === 0) return false;
    this.#missed = [];
    try {
      await flush?.();
      await this.#commit({
        isReset: this.#reported === undefined,
        startedSpans: startedSpans.map(([, span]) => span),
        endedSpans: endedSpans.map(([, span]) => span),
        missed,
        ...(isFeedChanged ? feed : {}),
      });
    } catch (error) {
      this.#missed = [...missed, ...this.#missed];
      throw error;
    }
    this.#reported = { spans, feed };
    return true;
  }

  /** The live spans of indices. */
  #liveSpans(): Map<string, LiveSpan> {
    const spans = new Map<string, LiveSpan>();
    for (const [key, { subscription, liveSince }] of this.#spans)
      if (subscription.source === "index" && liveSince !== undefined) {
        const { indexType = "", indexId } = subscription;
        spans.set(key, { indexType, indexId, from: liveSince });
      }
    return spans;
  }

  #liveFeed(): LiveFeedUpdate {
    const exchanges = [...this.#exchanges.keys()].flatMap((exchangeId) => {
      const since = this.exchangeLiveSince(exchangeId);
      return since === undefined ? [] : [{ exchangeId, since }];
    });
    return { cadence: this.#cadence, exchanges, markets: this.#selectedMarkets ?? null };
  }

  #setLiveSince(subscription: Subscription, liveSince: Micros | undefined, isAbsent: boolean): void {
    const state = this.#spans.get(subscriptionKey(subscription));
    // It may have been unsubscribed meanwhile.
    if (state) Object.assign(state, { liveSince, isAbsent });
  }

  /** Periods with missing ticks are to be retracted: the exchange's other subscriptions may have settled them. */
  #reportMissed(subscription: Subscription, missingSince: Micros | undefined, to: Micros): void {
    const state = this.#spans.get(subscriptionKey(subscription));
    if (!state || subscription.source !== "exchange") return;
    const { exchangeId = null } = subscription;
    const { liveSince } = state;
    // The period in which the live span began is polled.
    const from = missingSince ?? (liveSince === undefined ? undefined : liveSince + this.#cadence);
    if (from === undefined) return;
    this.#missed.push({ exchangeId: this.#exchanges.has(exchangeId) ? exchangeId : null, from, to });
  }
}

function isMissing({ liveSince, isAbsent }: SubscriptionSpan): boolean {
  return liveSince === undefined && !isAbsent;
}
