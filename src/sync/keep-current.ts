import type { LiveCommit } from "../ingest/commit-live.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/instant.ts";
import type { DerivativeType, Stream } from "../model/series.ts";
import { Alarm, loop } from "../runtime/loop.ts";
import type { Random } from "../runtime/random.ts";
import type { FeedMessage } from "../service/feed-messages.ts";
import type { FeedObservation } from "../service/live-feed.ts";
import { SubscriptionList } from "../service/subscription-list.ts";
import type { Connection } from "../warehouse/connection.ts";
import { refreshContracts, takeDerivativeTicks } from "./derivatives.ts";
import type { Directory } from "./directory.ts";
import { ExchangePoller } from "./exchange-poller.ts";
import { endUnwanted } from "./exchange-ticks.ts";
import { fillHoles } from "./fill-holes.ts";
import { HeadKeeper } from "./head-keeper.ts";
import { type Intake, serviceNow } from "./intake.ts";
import { followLive, tellLedger } from "./live-follower.ts";
import { LiveStanding } from "./live-standing.ts";
import { type LiveWishes, liveWishes } from "./live-wishes.ts";
import { takeMarketCaps } from "./market-caps.ts";
import { noticeProblems, prepare } from "./prepare.ts";
import { findSupported } from "./supported-derivatives.ts";
import type { SyncSettings } from "./sync-settings.ts";
import type { Problem } from "./trouble.ts";
import { noticesOf } from "./wanted-series.ts";

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
/** After the contracts of an exchange could not be had. */
const ASK_AGAIN_MS = 60_000;
/** What the settings select is found out anew so often where no lookups are refreshed. */
const SELECT_AGAIN_MS = 3_600_000;

/** The daemon's work beside its wiring: looks up, fills, follows live and polls, until the intake's signal aborts. */
export class CurrentKeeper {
  readonly #intake: Intake;
  readonly #options: KeepingCurrent;
  readonly #standing: LiveStanding;
  readonly #subscriptions = new SubscriptionList();
  readonly #heads: HeadKeeper;
  readonly #exchanges: ExchangePoller;
  readonly #holes = new Alarm();
  readonly #subscribed = new Alarm();
  readonly #caughtUp = Promise.withResolvers<void>();
  #directory: Directory | undefined;
  #wishes: LiveWishes | undefined;
  readonly #supported = new Map<string, readonly DerivativeType[]>();
  #isFilling = false;

  constructor(intake: Intake, options: KeepingCurrent) {
    this.#intake = intake;
    this.#options = options;
    const { settings, reader, random } = options;
    const { refreshSeconds, concurrency } = settings;
    const standing = new LiveStanding(refreshSeconds * MICROS_PER_SECOND);
    this.#standing = standing;
    this.#heads = new HeadKeeper(intake, {
      ...{ reader, random, refreshSeconds, concurrency, standing },
      problems: (problems) => options.problems("heads", problems),
      failed: (error) => options.failed("heads", error),
      reopened: () => this.#holes.ring(),
      caughtUp: () => this.#caughtUp.resolve(),
    });
    this.#exchanges = new ExchangePoller(intake, {
      ...{ refreshSeconds, standing },
      selection: () => this.#wishes?.selection,
      nameOf: (id) => this.#directory?.exchanges.find((each) => each.id === id)?.labels[0] ?? id,
      everyMs: this.#onGrid(refreshSeconds),
      problems: (problems) => options.problems("exchange tickers", problems),
      failed: (error) => options.failed("exchange tickers", error),
    });
    intake.signal.addEventListener("abort", () => this.#caughtUp.resolve(), { once: true });
  }

  /** Something should be looked at now rather than at the next round: the nightly job calls it. */
  lookAgain(): void {
    this.#heads.hurry();
    this.#holes.ring();
  }

  async run(): Promise<void> {
    await this.refresh();
    await Promise.all([
      this.#follow(),
      this.#heads.run(),
      // The present first: history can wait for as long as it takes to ask for the newest page of each.
      this.#caughtUp.promise.then(() =>
        this.#every(
          "holes",
          () => LOOK_FOR_HOLES_MS,
          () => this.#fill(),
          this.#holes,
        ),
      ),
      this.#lookups(),
      this.#exchanges.run(),
      this.#marketCaps(),
      this.#contracts(),
      this.#derivatives(),
    ]);
  }

  /** Lookups, ranking, what the settings select of them, and what of that is to be heard live. */
  async refresh(): Promise<void> {
    const { settings, reader, random } = this.#options;
    const { directory, problems } = await prepare(this.#intake, {
      settings,
      reader,
      random,
      storeMarketCaps: false,
    });
    this.#directory = directory;
    const wishes = liveWishes(settings, directory, reader);
    this.#wishes = wishes;
    const { selection } = wishes;
    const notices = selection.selections.flatMap(([setting, chosen]) => noticesOf(setting, chosen));
    this.#options.problems("lookups", [...problems, ...noticeProblems("exchange_ticks", notices)]);
    this.#standing.wish(wishes);
    this.#subscriptions.renew(this.#standing.subscriptions);
    await tellLedger(this.#intake, this.#standing);
    // Not before: a tick that is heard of a line would follow it again.
    if (selection.isResolved) await endUnwanted(this.#intake, selection.lines);
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
    return this.#every(
      "live feed",
      () => 5_000,
      async () => {
        while (this.#subscriptions.current.length === 0 && !signal.aborted)
          await this.#subscribed.wait(signal);
        await followLive(this.#intake, {
          wsUrl,
          subscriptions: this.#subscriptions,
          standing: this.#standing,
          refreshSeconds: settings.refreshSeconds,
          random,
          observe: observeFeed,
          committed: live,
          heard,
          changed: () => {
            this.#heads.lookAgain();
            this.#exchanges.lookAgain();
            this.#tellActivity();
          },
        });
      },
    );
  }

  /** Also where the lookups are switched off: the largest assets change, and liquid indices are learned. */
  #lookups(): Promise<void> {
    const { lookups } = this.#options.settings.streams;
    const everyMs = lookups === false ? SELECT_AGAIN_MS : lookups.every * 1000;
    return this.#every(
      "lookups",
      () => everyMs,
      () => this.refresh(),
      undefined,
      everyMs,
    );
  }

  #marketCaps(): Promise<void> {
    const { marketCap } = this.#options.settings.streams;
    if (marketCap === false) return Promise.resolve();
    return this.#every("market caps", this.#onGrid(marketCap.every), async () => {
      await takeMarketCaps(this.#intake, marketCap.every);
    });
  }

  /** Beside the ticks, which cannot wait until hundreds of exchanges have been asked whether they have derivatives. */
  #contracts(): Promise<void> {
    const { derivatives, lookups } = this.#options.settings.streams;
    if (derivatives === false) return Promise.resolve();
    const everyMs = (lookups === false ? 3600 : lookups.every) * 1000;
    let hasFailed = false;
    return this.#every(
      "derivative contracts",
      () => (hasFailed ? Math.min(ASK_AGAIN_MS, everyMs) : everyMs),
      async () => {
        hasFailed = false;
        if (!this.#directory) return;
        const refresh = (exchangeId: string, type: DerivativeType) =>
          refreshContracts(this.#intake, exchangeId, type);
        await findSupported(this.#supported, derivatives, this.#directory, refresh, async (ids, errand) => {
          for (const id of ids) {
            const isDone = await this.#alone("derivative contracts", () => errand(id));
            hasFailed ||= !isDone;
          }
        });
      },
    );
  }

  #derivatives(): Promise<void> {
    const { derivatives } = this.#options.settings.streams;
    if (derivatives === false) return Promise.resolve();
    return this.#every("derivatives", this.#onGrid(derivatives.every), async () => {
      await Promise.all(
        [...this.#supported].map(([exchangeId, types]) =>
          this.#alone("derivatives", () =>
            takeDerivativeTicks(this.#intake, exchangeId, types, derivatives.every),
          ),
        ),
      );
    });
  }

  /** One exchange's trouble is not the others'. */
  async #alone(part: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (this.#intake.signal.aborted) throw error;
      this.#options.failed(part, error);
      return false;
    }
  }

  /** A moment after each period of the service's clock begins: polls that drifted would miss one now and then. */
  #onGrid(seconds: number): () => number {
    return () => {
      const periodMs = seconds * 1000;
      const nowMs = serviceNow(this.#intake) / MICROS_PER_MS;
      return periodMs - (nowMs % periodMs) + Math.min(1_000, periodMs / 4);
    };
  }

  #every(
    part: string,
    everyMs: () => number,
    work: () => Promise<void>,
    wokenBy?: Alarm,
    firstAfterMs = 0,
  ): Promise<void> {
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
