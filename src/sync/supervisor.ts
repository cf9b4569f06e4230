import type { LiveCommitResult } from "../ingest/commit/live.ts";
import { historyStreams, type Stream } from "../model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/time.ts";
import { nextAskAt } from "../rule/confirm.ts";
import { type LoopOptions, runLoop, WakeSignal } from "../runtime/clock.ts";
import { HOUR_MS, MINUTE_MS, TEN_MINUTES_MS } from "../service/limits.ts";
import { SubscriptionStates } from "../service/live/subscription-states.ts";
import { readPendingClaims } from "../warehouse/coverage/pending-claims.ts";
import { type Problem, type SyncContext, serviceNow } from "./context/context.ts";
import { confirmService } from "./fetch/lookups.ts";
import { fillGaps } from "./history/fill-gaps.ts";
import { type DesiredSubscriptions, selectDesiredSubscriptions } from "./live/desired-subscriptions.ts";
import { followLiveFeed, type LiveFollowerOptions } from "./live/follower.ts";
import { HeadPoller } from "./live/head-poller.ts";
import { SubscriptionCoverage } from "./live/subscription-coverage.ts";
import { createExchangePoller } from "./polling/exchange-poller.ts";
import { pollSnapshots } from "./polling/snapshot-poller.ts";
import { refreshSelection, selectFromWarehouse } from "./selection/refresh.ts";
import { findNotices, noticesToProblems } from "./selection/selectors.ts";
import { type Directory, endDeselectedSnapshots, exchangeName } from "./selection/targets.ts";

interface SupervisorOptions extends Pick<LiveFollowerOptions, "wsUrl" | "onFeedMessage"> {
  readonly mayAdopt?: boolean;
  /** A part of the work failed and is retried. If this callback throws, the supervisor ends. */
  readonly onFailure: (part: string, error: unknown) => void;
  /** Called with all current problems of one part of the work. */
  readonly onProblems: (part: string, problems: readonly Problem[]) => void;
  /** Called with a text for people that says what the daemon is doing. */
  readonly onActivity: (activity: string) => void;
  /** Called after each scan that filled the gaps. */
  readonly onFilled: () => void;
  /** `lagMs`: from receiving the first message of the batch to its commit. */
  readonly onLiveCommit: (commit: LiveCommitResult, lagMs: number) => void;
}

/** A part of the work that runs at intervals. */
interface PeriodicTask extends Pick<LoopOptions, "delayMs" | "runOnce" | "wakeUp"> {
  readonly part: string;
  readonly startDelayMs?: number;
}

/** Runs the whole sync until the context's signal aborts: lookups, gap filling, live feed and polling. */
export class SyncSupervisor {
  readonly #context: SyncContext;
  readonly #options: SupervisorOptions;
  readonly #liveCoverage: SubscriptionCoverage;
  /** What the live feed subscribes to, and the state of each subscription. */
  readonly subscriptions = new SubscriptionStates();
  readonly #headPoller: HeadPoller;
  readonly #exchangePoller: ReturnType<typeof createExchangePoller>;
  readonly #gapScan = new WakeSignal();
  readonly #subscriptionsChanged = new WakeSignal();
  readonly #headsCaughtUp = Promise.withResolvers<void>();
  #directory: Directory | undefined;
  #desired: DesiredSubscriptions | undefined;
  #isFillingGaps = false;
  /** Consecutive refreshes with a failure that should be retried soon. */
  #unfinishedRefreshes = 0;

  constructor(context: SyncContext, options: SupervisorOptions) {
    this.#context = context;
    this.#options = options;
    const liveCoverage = new SubscriptionCoverage(
      context.settings.refreshSeconds * MICROS_PER_SECOND,
      (change) => context.ingest.call("commitLiveFeedChange", change, context.signal),
    );
    this.#liveCoverage = liveCoverage;
    this.#headPoller = new HeadPoller(context, {
      coverage: liveCoverage,
      onProblems: (problems) => options.onProblems("heads", problems),
      onError: (error) => options.onFailure("heads", error),
      onReopened: () => this.#gapScan.notify(),
      onCaughtUp: () => this.#headsCaughtUp.resolve(),
      onSilent: (subscription, since) => this.subscriptions.reportSilent(subscription, since),
    });
    this.#exchangePoller = createExchangePoller(context, {
      liveCoverage,
      subscriptions: this.subscriptions,
      selection: () => this.#desired?.selection,
      nameOf: (id) => exchangeName(this.#directory, id),
      onProblems: (problems) => options.onProblems("exchange tickers", problems),
      onFailure: (error) => options.onFailure("exchange tickers", error),
    });
    context.signal.addEventListener("abort", () => this.#headsCaughtUp.resolve(), { once: true });
  }

  get hasSelection(): boolean {
    return this.#directory !== undefined;
  }

  /** Searches for gaps now instead of at the next interval. */
  checkNow(): void {
    this.#headPoller.hurryDailyPolls();
    this.#gapScan.notify();
  }

  async run(): Promise<void> {
    const { wsUrl, mayAdopt = false } = this.#options;
    this.#options.onActivity("looking up what to sync");
    await confirmService(this.#context, { mayAdopt, checksKnownAddress: true });
    const storedDirectory = await selectFromWarehouse(this.#context, wsUrl);
    if (storedDirectory) await this.#applySelection(storedDirectory);
    else await this.refresh();
    await Promise.all([
      this.#followLive(),
      this.#headPoller.run(),
      // The heads come first: history waits until the newest page of each series has been fetched.
      this.#headsCaughtUp.promise.then(() =>
        this.#repeat({
          part: "gaps",
          delayMs: () => this.#gapScanDelayMs(),
          runOnce: () => this.#fillGaps(),
          wakeUp: this.#gapScan,
        }),
      ),
      // Also with lookups switched off, because the ranking changes and new liquid indices appear.
      this.#repeat({
        part: "lookups",
        delayMs: () => this.#lookupDelayMs(),
        runOnce: () => this.refresh(),
        startDelayMs: storedDirectory ? 0 : this.#lookupDelayMs(),
      }),
      this.#exchangePoller.run(),
      pollSnapshots(this.#context, { ...this.#options, directory: () => this.#directory }),
    ]);
  }

  /** Refreshes lookups and ranking, and applies the resulting selection. */
  async refresh(): Promise<void> {
    // Counted before the work, because a refresh that throws is unfinished too.
    this.#unfinishedRefreshes++;
    const { directory, problems, shouldRetrySoon, pendingRanking } = await refreshSelection(
      this.#context,
      false,
      (pendingProblems) => this.#options.onProblems("pending lookups", pendingProblems),
    );
    // The next refresh comes soon, and the poller of the market caps stores a ranking meanwhile.
    pendingRanking?.cancel();
    if (!shouldRetrySoon) this.#unfinishedRefreshes = 0;
    const notices = findNotices(this.#context.settings, directory);
    const ofTickers = notices.filter(({ stream }) => stream === "exchange_ticks");
    this.#options.onProblems("lookups", [...problems, ...noticesToProblems(ofTickers)]);
    await this.#applySelection(directory);
  }

  async #applySelection(directory: Directory): Promise<void> {
    const desired = selectDesiredSubscriptions(this.#context, directory);
    this.#directory = directory;
    this.#desired = desired;
    this.#liveCoverage.setDesired(desired);
    this.subscriptions.replace(this.#liveCoverage.subscriptions);
    await this.#liveCoverage.commit();
    // End targets only after unsubscribing, because a live tick of a deselected key would reopen its target.
    await endDeselectedSnapshots(this.#context, directory);
    this.#reportActivity();
    this.#subscriptionsChanged.notify();
    this.#exchangePoller.checkNow();
    this.#headPoller.requestReload();
    this.#gapScan.notify();
  }

  /** Fills all gaps but the heads, which the head poller fills. */
  async #fillGaps(): Promise<void> {
    this.#isFillingGaps = true;
    this.#reportActivity();
    const streams = new Set<Stream>(["ohlcv", "index_ticks"]);
    try {
      const { problems } = await fillGaps(this.#context, { streams, heads: "excluded" });
      this.#options.onProblems("gaps", problems);
    } finally {
      this.#isFillingGaps = false;
    }
    this.#headPoller.requestReload();
    this.#reportActivity();
    this.#options.onFilled();
  }

  /** Until all claims that are due within the interval can be repeated, so that they are confirmed when the pages say. */
  #gapScanDelayMs(): number {
    const { settings, reader } = this.#context;
    const now = serviceNow(this.#context);
    const delays = historyStreams
      .flatMap((stream) => [...readPendingClaims(reader, stream).values()].flat())
      .map((claim) => Math.ceil((nextAskAt(claim, settings.withdrawals) - now) / MICROS_PER_MS))
      .filter((ms) => ms > 0 && ms < TEN_MINUTES_MS);
    return delays.length === 0 ? TEN_MINUTES_MS : Math.max(...delays);
  }

  #reportActivity(): void {
    const following = this.#liveCoverage.isComplete
      ? "following the live feed"
      : "polling instead of the live feed";
    this.#options.onActivity(this.#isFillingGaps ? "filling gaps" : following);
  }

  #followLive(): Promise<void> {
    const { signal } = this.#context;
    return this.#repeat({
      part: "live feed",
      delayMs: () => 5_000,
      runOnce: async () => {
        while (this.subscriptions.current.length === 0 && !signal.aborted)
          await this.#subscriptionsChanged.wait(signal);
        await followLiveFeed(this.#context, {
          ...this.#options,
          subscriptions: this.subscriptions,
          coverage: this.#liveCoverage,
          onCommit: (commit, lagMs) => {
            this.#headPoller.recordSkips(commit.skippedTicks);
            this.#options.onLiveCommit(commit, lagMs);
          },
          onCoverageChange: () => {
            this.#headPoller.requestReload();
            this.#exchangePoller.checkNow();
            this.#reportActivity();
          },
        });
      },
    });
  }

  #lookupDelayMs(): number {
    const { lookups } = this.#context.settings.streams;
    const defaultMs = lookups === false ? HOUR_MS : lookups.every * 1000;
    const unfinished = this.#unfinishedRefreshes;
    return unfinished === 0 ? defaultMs : Math.min(defaultMs, MINUTE_MS * 2 ** (unfinished - 1));
  }

  async #repeat({ part, startDelayMs = 0, ...task }: PeriodicTask): Promise<void> {
    const { clock, signal } = this.#context;
    if (startDelayMs > 0) await clock.sleep(startDelayMs, signal).catch(() => {});
    await runLoop({ clock, signal, ...task, onError: (error) => this.#options.onFailure(part, error) });
  }
}
