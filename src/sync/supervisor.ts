import type { LiveCommit } from "../ingest/commit/live.ts";
import type { Stream } from "../model/streams.ts";
import { MICROS_PER_SECOND } from "../model/time.ts";
import type { Random } from "../runtime/backoff.ts";
import { Alarm, loop } from "../runtime/loop.ts";
import type { FeedObservation } from "../service/live/feed.ts";
import type { FeedMessage } from "../service/live/messages.ts";
import { SubscriptionList } from "../service/live/subscription-status.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { Intake, SyncSettings } from "./context/context.ts";
import type { Problem } from "./context/error-policy.ts";
import { fillHoles } from "./history/fill-gaps.ts";
import { type LiveWishes, liveWishes } from "./live/desired-subscriptions.ts";
import { followLive, tellLedger } from "./live/follower.ts";
import { HeadKeeper } from "./live/head-poller.ts";
import { LiveStanding } from "./live/subscription-coverage.ts";
import { ExchangePoller } from "./polling/exchange-poller.ts";
import { LatestPoller, onGrid } from "./polling/latest-poller.ts";
import type { Directory } from "./selection/directory.ts";
import { endDeselected } from "./selection/exchanges.ts";
import { noticeProblems, prepare, selectFromStore } from "./selection/refresh.ts";
import { noticesOf } from "./selection/targets.ts";

export interface KeepingCurrent {
  readonly settings: SyncSettings;
  readonly wsUrl: string;
  readonly reader: Connection;
  readonly random: Random;
  /** A part of the work failed and will be tried again; what this throws ends the daemon. */
  readonly failed: (part: string, error: unknown) => void;
  /** All that a part of the work has to complain about after a round; what it said before is over. */
  readonly problems: (part: string, problems: readonly Problem[]) => void;
  /** What the daemon is about, for people. */
  readonly about: (activity: string) => void;
  /** Everything that was missing at the start has been filled. */
  readonly filled: () => void;
  /** `lagMs`: from receiving the batch's first message to having it on disk. */
  readonly live: (commit: LiveCommit, lagMs: number) => void;
  /** What the live feed says beside its ticks. */
  readonly heard: (message: FeedMessage) => void;
  readonly observeFeed: (observation: FeedObservation) => void;
}

/** Holes other than the heads are looked for so often; whoever knows of one does not wait for it. */
const LOOK_FOR_HOLES_MS = 600_000;
/** What the settings select is found out anew so often where no lookups are refreshed. */
const SELECT_AGAIN_MS = 3_600_000;
/** Lookups that could not be had are tried again after this, after twice as long the next time, and so on. */
const ASK_AGAIN_MS = 60_000;

/** A part of the work that is done at intervals. */
interface Rounds {
  readonly part: string;
  /** The pause after each round, asked after it. */
  readonly everyMs: () => number;
  readonly work: () => Promise<void>;
  /** Begins a round early. */
  readonly wokenBy?: Alarm;
  readonly firstAfterMs?: number;
}

/** The daemon's work beside its wiring: looks up, fills, follows live and polls, until the intake's signal aborts. */
export class CurrentKeeper {
  readonly #intake: Intake;
  readonly #options: KeepingCurrent;
  readonly #standing: LiveStanding;
  readonly #subscriptions = new SubscriptionList();
  readonly #heads: HeadKeeper;
  readonly #exchanges: ExchangePoller;
  readonly #latest: LatestPoller;
  readonly #holes = new Alarm();
  readonly #subscribed = new Alarm();
  readonly #caughtUp = Promise.withResolvers<void>();
  #directory: Directory | undefined;
  #wishes: LiveWishes | undefined;
  #isFilling = false;
  /** Refreshes in a row that left something to be asked for again. */
  #unfinishedRefreshes = 0;

  constructor(intake: Intake, options: KeepingCurrent) {
    this.#intake = intake;
    this.#options = options;
    const { settings, reader, random } = options;
    const { refreshSeconds, concurrency, maxRequestsPerSecond } = settings;
    const standing = new LiveStanding(refreshSeconds * MICROS_PER_SECOND);
    this.#standing = standing;
    this.#heads = new HeadKeeper(intake, {
      ...{ reader, random, refreshSeconds, concurrency, maxRequestsPerSecond, standing },
      problems: (problems) => options.problems("heads", problems),
      failed: (error) => options.failed("heads", error),
      reopened: () => this.#holes.ring(),
      caughtUp: () => this.#caughtUp.resolve(),
    });
    this.#exchanges = new ExchangePoller(intake, {
      ...{ refreshSeconds, standing },
      selection: () => this.#wishes?.selection,
      nameOf: (id) => this.#directory?.exchanges.find((each) => each.id === id)?.labels[0] ?? id,
      everyMs: onGrid(intake, refreshSeconds),
      problems: (problems) => options.problems("exchange tickers", problems),
      failed: (error) => options.failed("exchange tickers", error),
    });
    this.#latest = new LatestPoller(intake, {
      streams: settings.streams,
      directory: () => this.#directory,
      problems: options.problems,
      failed: options.failed,
    });
    intake.signal.addEventListener("abort", () => this.#caughtUp.resolve(), { once: true });
  }

  /** Something should be looked at now rather than at the next round: the nightly job calls it. */
  lookAgain(): void {
    this.#heads.hurry();
    this.#holes.ring();
  }

  async run(): Promise<void> {
    const { settings, reader, random, wsUrl } = this.#options;
    const known = await selectFromStore(this.#intake, { settings, reader, random, wsUrl });
    if (known) await this.#turnTo(known, liveWishes(settings, known, reader));
    else await this.refresh();
    await Promise.all([
      this.#follow(),
      this.#heads.run(),
      // The present first: history can wait for as long as it takes to ask for the newest page of each.
      this.#caughtUp.promise.then(() =>
        this.#every({
          part: "holes",
          everyMs: () => LOOK_FOR_HOLES_MS,
          work: () => this.#fill(),
          wokenBy: this.#holes,
        }),
      ),
      this.#lookups(known ? 0 : this.#lookupPauseMs()),
      this.#exchanges.run(),
      this.#latest.run(),
    ]);
  }

  /** Lookups, ranking, what the settings select of them, and what of that is to be heard live. */
  async refresh(): Promise<void> {
    const { settings, reader, random } = this.#options;
    // Until the opposite is known: a refresh that throws is unfinished, too.
    this.#unfinishedRefreshes++;
    const { directory, problems, isWorthAskingAgain } = await prepare(this.#intake, {
      settings,
      reader,
      random,
      storeMarketCaps: false,
      hindered: (hindrances) => this.#options.problems("lookups under way", hindrances),
    });
    if (!isWorthAskingAgain) this.#unfinishedRefreshes = 0;
    const wishes = liveWishes(settings, directory, reader);
    const { selection } = wishes;
    const notices = selection.selections.flatMap(([setting, chosen]) => noticesOf(setting, chosen));
    this.#options.problems("lookups", [...problems, ...noticeProblems("exchange_ticks", notices)]);
    await this.#turnTo(directory, wishes);
  }

  /** From now on this is what the service is known to list, and what is to be heard of it. */
  async #turnTo(directory: Directory, wishes: LiveWishes): Promise<void> {
    this.#directory = directory;
    this.#wishes = wishes;
    this.#standing.wish(wishes);
    this.#subscriptions.renew(this.#standing.subscriptions);
    await tellLedger(this.#intake, this.#standing);
    // Not before: a tick that is heard of a line would follow it again.
    await endDeselected(this.#intake, this.#options.settings, directory);
    this.#subscribed.ring();
    this.#exchanges.lookAgain();
    this.#heads.lookAgain();
    this.#holes.ring();
  }

  /** What no single page at the head fills: history, and gaps that are longer or older. */
  async #fill(): Promise<void> {
    const { settings, reader, random } = this.#options;
    const { refreshSeconds, concurrency } = settings;
    this.#isFilling = true;
    this.#tellActivity();
    const streams = new Set<Stream>(["ohlcv", "index_ticks"]);
    const narrowing = { streams, withoutHeads: true };
    try {
      const filling = { reader, random, refreshSeconds, concurrency, narrowing };
      const { problems } = await fillHoles(this.#intake, filling);
      this.#options.problems("holes", problems);
    } finally {
      this.#isFilling = false;
    }
    this.#heads.lookAgain();
    this.#tellActivity();
    this.#options.filled();
  }

  #tellActivity(): void {
    const following = this.#standing.isFlowing
      ? "following the live feed"
      : "polling what the live feed does not bring";
    this.#options.about(this.#isFilling ? "filling what is missing" : following);
  }

  #follow(): Promise<void> {
    const { settings, wsUrl, random, live, heard, observeFeed } = this.#options;
    const { signal } = this.#intake;
    return this.#every({
      part: "live feed",
      everyMs: () => 5_000,
      work: async () => {
        while (this.#subscriptions.current.length === 0 && !signal.aborted)
          await this.#subscribed.wait(signal);
        await followLive(this.#intake, {
          wsUrl,
          subscriptions: this.#subscriptions,
          standing: this.#standing,
          refreshSeconds: settings.refreshSeconds,
          random,
          observe: observeFeed,
          committed: (commit, lagMs) => {
            this.#heads.doubt(commit.skips);
            live(commit, lagMs);
          },
          heard,
          changed: () => {
            this.#heads.lookAgain();
            this.#exchanges.lookAgain();
            this.#tellActivity();
          },
        });
      },
    });
  }

  /** Also where the lookups are switched off: the largest assets change, and liquid indices are learned. */
  #lookups(firstAfterMs: number): Promise<void> {
    return this.#every({
      part: "lookups",
      everyMs: () => this.#lookupPauseMs(),
      work: () => this.refresh(),
      firstAfterMs,
    });
  }

  #lookupPauseMs(): number {
    const { lookups } = this.#options.settings.streams;
    const usualMs = lookups === false ? SELECT_AGAIN_MS : lookups.every * 1000;
    const unfinished = this.#unfinishedRefreshes;
    return unfinished === 0 ? usualMs : Math.min(usualMs, ASK_AGAIN_MS * 2 ** (unfinished - 1));
  }

  /** A round of one part of the work, again and again. */
  #every({ part, everyMs, work, wokenBy, firstAfterMs = 0 }: Rounds): Promise<void> {
    const { clock, signal } = this.#intake;
    const begin = firstAfterMs > 0 ? clock.sleep(firstAfterMs, signal).catch(() => {}) : Promise.resolve();
    return begin.then(() =>
      loop({
        clock,
        signal,
        everyMs,
        work,
        failed: (error) => this.#options.failed(part, error),
        ...(wokenBy ? { woken: (until: AbortSignal) => wokenBy.wait(until) } : {}),
      }),
    );
  }
}
