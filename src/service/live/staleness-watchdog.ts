import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Subscription } from "./messages.ts";
import type { SubscriptionStates, TickWatch, TrackedSubscription } from "./subscription-states.ts";

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
  readonly tracked: TrackedSubscription;
  readonly remedy: StalenessRemedy;
  readonly missingSince: Micros | undefined;
}

interface WatchedSubscription {
  readonly tracked: TrackedSubscription;
  readonly watch: TickWatch;
}

interface StalenessWatchdogOptions {
  readonly subscriptions: SubscriptionStates;
  readonly clock: Clock;
  readonly refreshSeconds: number;
  readonly isMarketQuiet: QuietMarketCheck;
  readonly serviceNow: () => Micros;
  readonly onStale: (stale: readonly StaleSubscription[]) => void;
  /**
   * Ticks are missing, without a check by REST: they returned after a long pause, or none come at all. None
   * is missing before `missingSince`; undefined: since it was subscribed.
   */
  readonly onTicksMissed: (tracked: TrackedSubscription, missingSince: Micros | undefined) => void;
  /** Ticks returned after a remedy or a pause. */
  readonly onRecovered: (tracked: TrackedSubscription) => void;
}

/** Detects subscriptions without ticks: a socket may answer every PING and send none. */
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

  /** The service confirmed it: ticks are due from now on. */
  watch(tracked: TrackedSubscription): void {
    const staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
    const { watch } = tracked;
    if (watch) {
      const isWaiting = watch.staleAt === Number.POSITIVE_INFINITY;
      watch.staleAt = isWaiting ? staleAt : Math.max(watch.staleAt, staleAt);
    } else
      tracked.watch = {
        staleAt,
        lastTickTs: undefined,
        quietUntil: undefined,
        remediesTried: 0,
        hasUnverifiedSilence: false,
      };
  }

  /** The feed requests it again: its silence counts from now on. */
  restartTimer({ watch }: TrackedSubscription): void {
    if (watch?.staleAt === Number.POSITIVE_INFINITY)
      watch.staleAt = this.#options.clock.monotonic() + this.#staleAfterMs;
  }

  /** The connection was lost: no ticks are due until the next one subscribes. */
  suspendAll(): void {
    const now = this.#options.clock.monotonic();
    for (const { watch } of this.#watched()) {
      // It was stale and not yet checked: its next tick reports the missing ones.
      if (watch.staleAt <= now) watch.hasUnverifiedSilence = true;
      watch.staleAt = Number.POSITIVE_INFINITY;
    }
  }

  recordTick(keys: readonly string[]): void {
    const now = this.#options.clock.monotonic();
    this.#lastTickAt = now;
    for (const key of keys) {
      const tracked = this.#options.subscriptions.get(key);
      if (!tracked?.watch) continue;
      const { watch } = tracked;
      // The tick came before the check of a stale subscription: ticks are missing all the same.
      if ((watch.staleAt <= now || watch.hasUnverifiedSilence) && watch.remediesTried === 0) {
        this.#options.onTicksMissed(tracked, missingSince(watch));
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
   * Compares only the longest silent subscriptions with REST. If REST has newer ticks for one, all silent ones
   * count as stale: to compare thousands one by one would take an hour.
   */
  async check(): Promise<void> {
    if (this.#isChecking) return;
    const startedAt = this.#options.clock.monotonic();
    const due = this.#watched().filter(({ watch }) => watch.staleAt <= startedAt);
    if (due.length === 0) return;
    const checked = due.toSorted((a, b) => a.watch.staleAt - b.watch.staleAt).slice(0, MAX_QUIET_CHECKS);
    this.#isChecking = true;
    const quietResults = new Map(
      await Promise.all(
        checked.map(async (watched) => [watched, await this.#checkQuietMarket(watched)] as const),
      ),
    );
    this.#isChecking = false;
    const now = this.#options.clock.monotonic();
    // Skip those that got a tick, or that a new connection requested, during the check.
    const silent = due.filter(({ tracked, watch }) => watch.staleAt <= now && tracked.watch === watch);
    const isAnyStale = silent.some((watched) => quietResults.get(watched) === false);
    const stale: StaleSubscription[] = [];
    for (const watched of silent) {
      const wasChecked = quietResults.has(watched);
      if (!wasChecked && !isAnyStale) continue;
      const isQuiet = wasChecked ? quietResults.get(watched) : false;
      watched.watch.staleAt = now + this.#staleAfterMs;
      // REST could not say whether the market was quiet: report missing ticks when the next one comes.
      watched.watch.hasUnverifiedSilence = isQuiet === undefined;
      if (isQuiet === false) stale.push(this.#chooseRemedy(watched, now));
    }
    if (stale.length === 0) return;
    this.#options.onStale(stale);
    if (now - this.#lastTickAt >= this.#staleAfterMs) this.#reportAllMissed();
  }

  #chooseRemedy({ tracked, watch }: WatchedSubscription, now: number): StaleSubscription {
    const isLast = watch.remediesTried >= remedies.length - 1;
    const areAllSilent = now - this.#lastTickAt > MIN_RECONNECT_INTERVAL_MS;
    const preferred = isLast && areAllSilent ? "reconnect" : (remedies[watch.remediesTried] ?? "poll");
    // Subscriptions that go stale together must not cause one reconnect each.
    const hasReconnected =
      preferred === "reconnect" && now - this.#lastReconnectAt < MIN_RECONNECT_INTERVAL_MS;
    const remedy = hasReconnected ? "poll" : preferred;
    if (remedy === "reconnect") this.#lastReconnectAt = now;
    if (remedy === "resubscribe") watch.staleAt = Number.POSITIVE_INFINITY;
    if (isLast) watch.staleAt += MIN_RECONNECT_INTERVAL_MS;
    watch.remediesTried++;
    return { tracked, remedy, missingSince: missingSince(watch) };
  }

  /** No ticks come at all while the market moves on: no need to compare each subscription with REST. */
  #reportAllMissed(): void {
    for (const { tracked, watch } of this.#watched()) {
      if (watch.remediesTried > 0) continue;
      watch.remediesTried = 1;
      this.#options.onTicksMissed(tracked, missingSince(watch));
    }
  }

  #watched(): WatchedSubscription[] {
    return this.#options.subscriptions.current.flatMap((tracked) =>
      tracked.watch ? [{ tracked, watch: tracked.watch }] : [],
    );
  }

  /** Undefined if REST could not say in time: then no remedy is tried. */
  async #checkQuietMarket({ tracked, watch }: WatchedSubscription): Promise<boolean | undefined> {
    // REST may lag by one period.
    const restKnownTs = this.#options.serviceNow() - this.#periodMs * MICROS_PER_MS;
    const answered = new AbortController();
    const timeout = this.#options.clock.sleep(QUIET_CHECK_TIMEOUT_MS, answered.signal).catch(() => undefined);
    try {
      const isQuiet =
        (await Promise.race([
          this.#options.isMarketQuiet(tracked.subscription, watch.lastTickTs),
          timeout,
        ])) ?? undefined;
      if (isQuiet) watch.quietUntil = restKnownTs;
      return isQuiet;
    } catch {
      return undefined;
    } finally {
      answered.abort();
    }
  }
}

/** No tick is known to be missing before this timestamp. */
function missingSince({ lastTickTs, quietUntil }: TickWatch): Micros | undefined {
  if (lastTickTs === undefined || quietUntil === undefined) return lastTickTs ?? quietUntil;
  return Math.max(lastTickTs, quietUntil);
}
