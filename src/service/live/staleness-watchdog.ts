import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import { finishesWithin } from "../../runtime/timeouts.ts";
import { MAX_QUIET_CHECKS, MAX_SILENT_PERIODS, SMALL_ANSWER_TIMEOUT_MS, TEN_MINUTES_MS } from "../limits.ts";
import type { ExchangeSubscription, SubscriptionStates, TrackedSubscription } from "./subscription-states.ts";

/** What to do about a stale subscription. */
type StalenessRemedy = "resubscribe" | "reconnect" | "poll";

/**
 * Tried in this order. `poll` resubscribes too, but does not reconnect: one stale subscription must not
 * interrupt the others. While no subscription receives ticks, the feed reconnects from time to time instead.
 */
const remedies: readonly StalenessRemedy[] = ["resubscribe", "reconnect", "poll"];

/** True if REST has no tick newer than the last one received. */
export type QuietMarketCheck = (
  subscription: ExchangeSubscription,
  lastTickTs: Micros | undefined,
) => Promise<boolean>;

/** A subscription whose ticks stopped although REST has newer ones. */
export interface StaleSubscription {
  readonly tracked: TrackedSubscription;
  readonly remedy: StalenessRemedy;
  readonly missingSince: Micros | undefined;
}

interface TrackedExchange extends TrackedSubscription {
  readonly subscription: ExchangeSubscription;
}

interface StalenessWatchdogOptions {
  readonly subscriptions: SubscriptionStates;
  readonly clock: Clock;
  readonly refreshSeconds: number;
  readonly isMarketQuiet: QuietMarketCheck;
  readonly serviceNow: () => Micros;
  readonly onStale: (stale: readonly StaleSubscription[]) => void;
  /** One index of a subscription gets no ticks. */
  readonly onRenew: (tracked: TrackedSubscription) => void;
  /**
   * Ticks are missing without a check by REST: they returned after a long pause, or no subscription receives
   * any. None is missing before `missingSince`; undefined: they may be missing since the live span began.
   */
  readonly onTicksMissed: (tracked: TrackedSubscription, missingSince: Micros | undefined) => void;
  /** Ticks returned after a remedy or a pause. */
  readonly onRecovered: (tracked: TrackedSubscription) => void;
}

/**
 * Finds a remedy for subscriptions whose ticks stopped: the service may answer every PING and still send none. Of indices,
 * which have a history, the head poller reports a silence; of exchanges it compares REST with the feed itself.
 */
export class StalenessWatchdog {
  readonly #options: StalenessWatchdogOptions;
  readonly #periodMs: number;
  readonly #staleAfterMs: number;
  #isChecking = false;
  /** Of any subscription, on the monotonic clock. */
  #lastTickAt = Number.NEGATIVE_INFINITY;
  #lastReconnectAt = Number.NEGATIVE_INFINITY;

  constructor(options: StalenessWatchdogOptions) {
    this.#options = options;
    this.#periodMs = options.refreshSeconds * 1000;
    this.#staleAfterMs = MAX_SILENT_PERIODS * this.#periodMs;
  }

  /** Call it when the service confirmed the subscription: ticks are due from now on. */
  watch({ watch }: TrackedSubscription): void {
    const staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
    const wasSuspended = watch.staleAt === Number.POSITIVE_INFINITY;
    watch.isConfirmed = true;
    watch.staleAt = wasSuspended ? staleAt : Math.max(watch.staleAt, staleAt);
  }

  /** Call it when the feed requests the subscription again: silence counts from now on. */
  restartTimer({ watch }: TrackedSubscription): void {
    if (watch.isConfirmed && watch.staleAt === Number.POSITIVE_INFINITY)
      watch.staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
  }

  /** Call it when the connection was lost: no ticks are due until the next connection subscribes. */
  suspendAll(): void {
    const now = this.#options.clock.monotonic();
    for (const tracked of this.#options.subscriptions.current) {
      const { watch } = tracked;
      // Stale but not yet checked: report the missing ticks when the next tick arrives.
      if (watch.staleAt <= now && isExchange(tracked)) watch.hasUnverifiedSilence = true;
      watch.staleAt = Number.POSITIVE_INFINITY;
    }
  }

  recordTick(keys: readonly string[]): void {
    const now = this.#options.clock.monotonic();
    this.#lastTickAt = now;
    for (const key of keys) {
      const tracked = this.#options.subscriptions.get(key);
      if (!tracked?.watch.isConfirmed) continue;
      const { watch } = tracked;
      // This tick ends a silence that REST has not checked: the ticks before it are missing all the same.
      const isUnverified = watch.hasUnverifiedSilence || (watch.staleAt <= now && isExchange(tracked));
      if (isUnverified && watch.remediesTried === 0) {
        this.#options.onTicksMissed(tracked, watch.missingSince);
        watch.remediesTried = 1;
      }
      watch.hasUnverifiedSilence = false;
      watch.staleAt = now + this.#staleAfterMs;
      watch.lastTickTs = this.#options.serviceNow();
      if (watch.remediesTried === 0) continue;
      watch.remediesTried = 0;
      this.#options.onRecovered(tracked);
    }
  }

  /**
   * Compares only the longest silent subscriptions with REST. If REST has newer ticks for one, all silent
   * ones count as stale: comparing thousands one by one would take an hour.
   */
  async check(): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    this.#escalate(startedAt);
    if (this.#isChecking) return;
    const due = this.#options.subscriptions.current
      .filter(isExchange)
      .filter(({ watch }) => watch.staleAt <= startedAt);
    if (due.length === 0) return;
    const checked = due.toSorted((a, b) => a.watch.staleAt - b.watch.staleAt).slice(0, MAX_QUIET_CHECKS);
    this.#isChecking = true;
    const answers = await Promise.all(checked.map((tracked) => this.#checkQuietMarket(tracked)));
    this.#isChecking = false;
    const quietResults = new Map(checked.map((tracked, at) => [tracked, answers[at]]));
    const now = this.#options.clock.monotonic();
    // Skip subscriptions that got a tick, or that a new connection requested, during the check.
    const silent = due.filter(({ watch }) => watch.staleAt <= now);
    const isAnyStale = silent.some((tracked) => quietResults.get(tracked) === false);
    const stale: StaleSubscription[] = [];
    for (const tracked of silent) {
      const wasChecked = quietResults.has(tracked);
      if (!wasChecked && !isAnyStale) continue;
      const isQuiet = wasChecked ? quietResults.get(tracked) : false;
      tracked.watch.staleAt = now + this.#staleAfterMs;
      // REST did not show whether the market was quiet: report missing ticks when the next tick arrives.
      tracked.watch.hasUnverifiedSilence = isQuiet === undefined;
      if (isQuiet === false) stale.push(this.#chooseRemedy(tracked, now));
    }
    this.#reportStale(stale, now);
  }

  /**
   * REST has ticks of an index that did not arrive since `since`. If others of its type did, renewing the subscription is all
   * that can help; if none did, the subscription is stale.
   */
  reportSilent(tracked: TrackedSubscription, since: Micros): void {
    const { watch } = tracked;
    if (!watch.isConfirmed) return;
    const now = this.#options.clock.monotonic();
    if ((watch.lastTickTs ?? 0) > since + this.#periodMs * MICROS_PER_MS) this.#options.onRenew(tracked);
    else if (watch.remediesTried === 0) {
      watch.staleAt = now + this.#staleAfterMs;
      this.#reportStale([this.#chooseRemedy(tracked, now)], now);
    }
  }

  /** Tries the next remedy for indices that still get no tick. */
  #escalate(now: number): void {
    const stale: StaleSubscription[] = [];
    for (const tracked of this.#options.subscriptions.current) {
      const { watch } = tracked;
      if (isExchange(tracked) || watch.remediesTried === 0 || watch.staleAt > now) continue;
      watch.staleAt = now + this.#staleAfterMs;
      stale.push(this.#chooseRemedy(tracked, now));
    }
    this.#reportStale(stale, now);
  }

  #reportStale(stale: readonly StaleSubscription[], now: number): void {
    if (stale.length === 0) return;
    this.#options.onStale(stale);
    if (now - this.#lastTickAt >= this.#staleAfterMs) this.#reportAllMissed();
  }

  #chooseRemedy(tracked: TrackedSubscription, now: number): StaleSubscription {
    const { watch } = tracked;
    const isLast = watch.remediesTried >= remedies.length - 1;
    const areAllSilent = now - this.#lastTickAt > TEN_MINUTES_MS;
    const preferred = isLast && areAllSilent ? "reconnect" : (remedies[watch.remediesTried] ?? "poll");
    // Subscriptions that go stale together must not cause one reconnect each.
    const hasReconnected = preferred === "reconnect" && now - this.#lastReconnectAt < TEN_MINUTES_MS;
    const remedy = hasReconnected ? "poll" : preferred;
    if (remedy === "reconnect") this.#lastReconnectAt = now;
    if (remedy === "resubscribe") watch.staleAt = Number.POSITIVE_INFINITY;
    if (isLast) watch.staleAt += TEN_MINUTES_MS;
    watch.remediesTried++;
    return { tracked, remedy, missingSince: watch.missingSince };
  }

  /** No subscription receives ticks although REST has newer ones: report all without further checks. */
  #reportAllMissed(): void {
    for (const tracked of this.#options.subscriptions.current) {
      const { watch } = tracked;
      if (!watch.isConfirmed || watch.remediesTried > 0) continue;
      watch.remediesTried = 1;
      this.#options.onTicksMissed(tracked, watch.missingSince);
    }
  }

  /** Undefined if REST gave no usable answer in time: then the watchdog tries no remedy. */
  async #checkQuietMarket({ subscription, watch }: TrackedExchange): Promise<boolean | undefined> {
    const { clock, isMarketQuiet, serviceNow } = this.#options;
    // REST may lag by one period, so its answer is valid only up to this timestamp.
    const restKnownTs = serviceNow() - this.#periodMs * MICROS_PER_MS;
    const answer = isMarketQuiet(subscription, watch.lastTickTs).catch(() => undefined);
    if (!(await finishesWithin(clock, SMALL_ANSWER_TIMEOUT_MS, answer))) return undefined;
    const isQuiet = await answer;
    if (isQuiet) watch.quietUntil = restKnownTs;
    return isQuiet;
  }
}

function isExchange(tracked: TrackedSubscription): tracked is TrackedExchange {
  return tracked.subscription.source === "exchange";
}
