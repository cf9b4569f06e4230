import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Subscription, subscriptionKey } from "./messages.ts";

/** One late and one lost tick raise no alarm. */
const MAX_SILENT_PERIODS = 2.5;
const MIN_RECONNECT_INTERVAL_MS = 600_000;
const QUIET_CHECK_TIMEOUT_MS = 30_000;
/** REST requests per check. */
const MAX_QUIET_CHECKS = 8;

/** What to do about a stale subscription. */
type StalenessRemedy = "resubscribe" | "reconnect" | "poll";

/**
 * Tried in this order. Polling lasts until ticks return: one stale subscription must not cost the others
 * their connection. If all are stale, the feed reconnects from time to time, since there is nothing to lose.
 */
const remedies: readonly StalenessRemedy[] = ["resubscribe", "reconnect", "poll"];

/** True if REST has no tick newer than the last one received. */
export type QuietMarketCheck = (
  subscription: Subscription,
  lastTickTs: Micros | undefined,
) => Promise<boolean>;

/** Its ticks stopped, but REST has newer ones. */
export interface StaleSubscription {
  readonly subscription: Subscription;
  readonly remedy: StalenessRemedy;
  readonly missingSince: Micros | undefined;
}

interface WatchedSubscription {
  readonly subscription: Subscription;
  /** On the monotonic clock; infinite until it is subscribed. */
  staleAt: number;
  lastTickTs: Micros | undefined;
  /** REST had no newer tick at this time, so none is missing before it. */
  quietUntil: Micros | undefined;
  remediesTried: number;
  /** It was silent for too long, and REST could not say whether its market was quiet. */
  hasUnverifiedSilence: boolean;
}

interface StalenessWatchdogOptions {
  readonly clock: Clock;
  readonly refreshSeconds: number;
  readonly isMarketQuiet: QuietMarketCheck;
  readonly serviceNow: () => Micros;
  readonly onStale: (stale: readonly StaleSubscription[]) => void;
  /**
   * Ticks are missing, without a check by REST: they returned after a long pause, or none come at all. None
   * is missing before `missingSince`; undefined: since it was subscribed.
   */
  readonly onTicksMissed: (subscription: Subscription, missingSince: Micros | undefined) => void;
  /** Ticks returned after a remedy or a pause. */
  readonly onRecovered: (subscription: Subscription) => void;
}

/** Detects subscriptions without ticks: a socket may answer every PING and send none. */
export class StalenessWatchdog {
  readonly #options: StalenessWatchdogOptions;
  readonly #periodMs: number;
  readonly #staleAfterMs: number;
  readonly #watched = new Map<string, WatchedSubscription>();
  #isChecking = false;
  /** Of any subscription, on the monotonic clock. */
  #lastTickAt = Number.NEGATIVE_INFINITY;
  #lastReconnectAt = Number.NEGATIVE_INFINITY;

  constructor(options: StalenessWatchdogOptions) {
    this.#options = options;
    this.#periodMs = options.refreshSeconds * 1000;
    this.#staleAfterMs = MAX_SILENT_PERIODS * this.#periodMs;
  }

  /** The service confirmed it: ticks are due from now on. */
  watch(subscription: Subscription): void {
    const key = subscriptionKey(subscription);
    const staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
    const known = this.#watched.get(key);
    if (known) {
      const isWaiting = known.staleAt === Number.POSITIVE_INFINITY;
      known.staleAt = isWaiting ? staleAt : Math.max(known.staleAt, staleAt);
    } else
      this.#watched.set(key, {
        subscription,
        staleAt,
        lastTickTs: undefined,
        quietUntil: undefined,
        remediesTried: 0,
        hasUnverifiedSilence: false,
      });
  }

  /** The feed requests it again: its silence counts from now on. */
  restartTimer(subscription: Subscription): void {
    const known = this.#watched.get(subscriptionKey(subscription));
    if (known?.staleAt === Number.POSITIVE_INFINITY)
      known.staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
  }

  /** The connection was lost: no ticks are due until the next one subscribes. */
  suspendAll(): void {
    const now = this.#options.clock.monotonic();
    for (const watched of this.#watched.values()) {
      // It was stale and not yet checked: its next tick reports the missing ones.
      if (watched.staleAt <= now) watched.hasUnverifiedSilence = true;
      watched.staleAt = Number.POSITIVE_INFINITY;
    }
  }

  unwatch(subscription: Subscription): void {
    this.#watched.delete(subscriptionKey(subscription));
  }

  recordTick(keys: readonly string[]): void {
    const now = this.#options.clock.monotonic();
    this.#lastTickAt = now;
    for (const key of keys) {
      const watched = this.#watched.get(key);
      if (!watched) continue;
      // The tick came before the check of a stale subscription: ticks are missing all the same.
      if ((watched.staleAt <= now || watched.hasUnverifiedSilence) && watched.remediesTried === 0) {
        this.#options.onTicksMissed(watched.subscription, missingSince(watched));
        watched.remediesTried = 1;
      }
      watched.hasUnverifiedSilence = false;
      watched.staleAt = now + this.#staleAfterMs;
      watched.lastTickTs = this.#options.serviceNow();
      if (watched.remediesTried === 0) continue;
      watched.remediesTried = 0;
      this.#options.onRecovered(watched.subscription);
    }
  }

  /**
   * Compares only the longest silent subscriptions with REST. If REST has newer ticks for one, all silent ones
   * count as stale: to compare thousands one by one would take an hour.
   */
  async check(): Promise<void> {
    if (this.#isChecking) return;
    const startedAt = this.#options.clock.monotonic();
    const due = [...this.#watched.values()].filter(({ staleAt }) => staleAt <= startedAt);
    if (due.length === 0) return;
    const checked = due.toSorted((a, b) => a.staleAt - b.staleAt).slice(0, MAX_QUIET_CHECKS);
    this.#isChecking = true;
    const quietResults = new Map(
      await Promise.all(
        checked.map(async (watched) => [watched, await this.#checkQuietMarket(watched)] as const),
      ),
    );
    this.#isChecking = false;
    const now = this.#options.clock.monotonic();
    // Skip those that got a tick, or that a new connection requested, during the check.
    const silent = due.filter(
      (watched) =>
        watched.staleAt <= now && this.#watched.get(subscriptionKey(watched.subscription)) === watched,
    );
    const isAnyStale = silent.some((watched) => quietResults.get(watched) === false);
    const stale: StaleSubscription[] = [];
    for (const watched of silent) {
      const wasChecked = quietResults.has(watched);
      if (!wasChecked && !isAnyStale) continue;
      const isQuiet = wasChecked ? quietResults.get(watched) : false;
      watched.staleAt = now + this.#staleAfterMs;
      // REST could not say whether the market was quiet: report missing ticks when the next one comes.
      watched.hasUnverifiedSilence = isQuiet === undefined;
      if (isQuiet === false) stale.push(this.#chooseRemedy(watched, now));
    }
    if (stale.length === 0) return;
    this.#options.onStale(stale);
    if (now - this.#lastTickAt >= this.#staleAfterMs) this.#reportAllMissed();
  }

  #chooseRemedy(watched: WatchedSubscription, now: number): StaleSubscription {
    const isLast = watched.remediesTried >= remedies.length - 1;
    const areAllSilent = now - this.#lastTickAt > MIN_RECONNECT_INTERVAL_MS;
    const preferred = isLast && areAllSilent ? "reconnect" : (remedies[watched.remediesTried] ?? "poll");
    // Subscriptions that go stale together must not cause one reconnect each.
    const hasReconnected =
      preferred === "reconnect" && now - this.#lastReconnectAt < MIN_RECONNECT_INTERVAL_MS;
    const remedy = hasReconnected ? "poll" : preferred;
    if (remedy === "reconnect") this.#lastReconnectAt = now;
    if (remedy === "resubscribe") watched.staleAt = Number.POSITIVE_INFINITY;
    if (isLast) watched.staleAt += MIN_RECONNECT_INTERVAL_MS;
    watched.remediesTried++;
    return { subscription: watched.subscription, remedy, missingSince: missingSince(watched) };
  }

  /** No ticks come at all while the market moves on: no need to compare each subscription with REST. */
  #reportAllMissed(): void {
    for (const watched of this.#watched.values()) {
      if (watched.remediesTried > 0) continue;
      watched.remediesTried = 1;
      this.#options.onTicksMissed(watched.subscription, missingSince(watched));
    }
  }

  /** Undefined if REST could not say in time: then no remedy is tried. */
  async #checkQuietMarket(watched: WatchedSubscription): Promise<boolean | undefined> {
    const { subscription, lastTickTs } = watched;
    // REST may lag by one period.
    const restKnownTs = this.#options.serviceNow() - this.#periodMs * MICROS_PER_MS;
    const answered = new AbortController();
    const timeout = this.#options.clock.sleep(QUIET_CHECK_TIMEOUT_MS, answered.signal).catch(() => undefined);
    try {
      const isQuiet =
        (await Promise.race([this.#options.isMarketQuiet(subscription, lastTickTs), timeout])) ?? undefined;
      if (isQuiet) watched.quietUntil = restKnownTs;
      return isQuiet;
    } catch {
      return undefined;
    } finally {
      answered.abort();
    }
  }
}

/** No tick is known to be missing before this timestamp. */
function missingSince({ lastTickTs, quietUntil }: WatchedSubscription): Micros | undefined {
  if (lastTickTs === undefined || quietUntil === undefined) return lastTickTs ?? quietUntil;
  return Math.max(lastTickTs, quietUntil);
}
