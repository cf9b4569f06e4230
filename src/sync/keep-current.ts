import type { LiveCommit } from "../ingest/commit-live.ts";
import { MICROS_PER_MS } from "../model/instant.ts";
import type { Stream } from "../model/series.ts";
import { Alarm, loop } from "../runtime/loop.ts";
import type { Random } from "../runtime/random.ts";
import type { FeedMessage, Subscription } from "../service/feed-messages.ts";
import type { FeedObservation } from "../service/live-feed.ts";
import type { Connection } from "../warehouse/connection.ts";
import { refreshContracts, takeDerivativeTicks } from "./derivatives.ts";
import type { Directory } from "./directory.ts";
import { fillHoles } from "./fill-holes.ts";
import { type Intake, serviceNow } from "./intake.ts";
import { followLive } from "./live-follower.ts";
import { takeMarketCaps } from "./market-caps.ts";
import { prepare } from "./prepare.ts";
import { takeSnapshots } from "./snapshots.ts";
import { type SupportedDerivatives, supportedDerivatives } from "./supported-derivatives.ts";
import type { SyncSettings } from "./sync-settings.ts";
import type { Problem } from "./trouble.ts";

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

const HOUR_MS = 3_600_000;

/** The daemon's work beside its wiring: looks up, fills, follows live and polls, until the intake's signal aborts. */
export class CurrentKeeper {
  readonly #intake: Intake;
  readonly #options: KeepingCurrent;
  readonly #missed = new Alarm();
  #directory: Directory | undefined;
  #supported: SupportedDerivatives = new Map();
  #isFlowing = false;

  constructor(intake: Intake, options: KeepingCurrent) {
    this.#intake = intake;
    this.#options = options;
  }

  /** Something should be looked at now rather than at the next round: the nightly job calls it. */
  lookAgain(): void {
    this.#missed.ring();
  }

  async run(): Promise<void> {
    await this.refresh();
    await Promise.all([
      this.#follow(),
      this.#every("holes", this.#fillPauseMs(), () => this.#fill(), this.#missed),
      this.#lookups(),
      this.#exchangeTicks(),
      this.#marketCaps(),
      this.#derivatives(),
    ]);
  }

  /** Lookups, ranking, and what the settings select of them. */
  async refresh(): Promise<void> {
    const { settings, reader, random } = this.#options;
    const { directory, problems } = await prepare(this.#intake, {
      settings,
      reader,
      random,
      storeMarketCaps: false,
    });
    this.#directory = directory;
    this.#options.problems("lookups", problems);
  }

  async #fill(): Promise<void> {
    const { settings, reader, random } = this.#options;
    const { refreshSeconds, concurrency } = settings;
    this.#options.about("filling what is missing");
    const narrowing = {
      streams: new Set<Stream>(["ohlcv", "index_ticks"]),
      indexIds: undefined,
      window: undefined,
    };
    const { problems } = await fillHoles(this.#intake, {
      reader,
      random,
      refreshSeconds,
      concurrency,
      narrowing,
    });
    this.#options.problems("holes", problems);
    this.#options.about(this.#isFlowing ? "following the live feed" : "polling, since the live feed is down");
    this.#options.filled();
  }

  /** Confirmed hourly while ticks flow live; at the service's own cadence while they do not. */
  #fillPauseMs(): () => number {
    return () => (this.#isFlowing ? HOUR_MS : this.#options.settings.refreshSeconds * 1000);
  }

  async #follow(): Promise<void> {
    const { settings, wsUrl, random, live, heard, observeFeed } = this.#options;
    const subscriptions = this.#subscriptions();
    if (subscriptions.length === 0) {
      this.#isFlowing = true;
      return;
    }
    await this.#every(
      "live feed",
      () => 5_000,
      () =>
        followLive(this.#intake, {
          wsUrl,
          subscriptions,
          refreshSeconds: settings.refreshSeconds,
          random,
          observe: observeFeed,
          committed: live,
          heard,
          missed: () => this.#missed.ring(),
          flowing: (isFlowing) => {
            if (this.#isFlowing === isFlowing) return;
            this.#isFlowing = isFlowing;
            this.#missed.ring();
          },
        }),
    );
  }

  /** A whole family where all of it is selected, single indices otherwise. */
  #subscriptions(): Subscription[] {
    const { intraday } = this.#options.settings.streams;
    const directory = this.#directory;
    if (intraday === false || !directory) return [];
    return (["GWA", "MWA", "LX"] as const).flatMap((indexType): Subscription[] => {
      const selector = intraday[indexType];
      if (selector.kind === "none") return [];
      if (selector.kind === "all") return [{ source: "index", indexType }];
      return this.#options.reader
        .statement(
          `SELECT s.index_id FROM wanted_ranges w JOIN series s ON s.series = w.series
            WHERE w.stream = 'index_ticks' AND w.to_ts IS NULL AND s.index_type = ?`,
        )
        .pluck()
        .all([indexType])
        .map((indexId) => ({ source: "index", indexType, indexId: String(indexId) }));
    });
  }

  #lookups(): Promise<void> {
    const { lookups } = this.#options.settings.streams;
    if (lookups === false) return Promise.resolve();
    return this.#every(
      "lookups",
      () => lookups.every * 1000,
      () => this.refresh(),
      undefined,
      lookups.every * 1000,
    );
  }

  #exchangeTicks(): Promise<void> {
    const { settings, random } = this.#options;
    if (settings.streams.exchangeTickers === false) return Promise.resolve();
    return this.#every("exchange tickers", this.#onGrid(settings.refreshSeconds), async () => {
      const directory = this.#directory;
      if (!directory) return;
      const isWanted = (stream: Stream) => stream === "exchange_ticks";
      const problems = await takeSnapshots(this.#intake, { settings, directory, random, isWanted });
      this.#options.problems("exchange tickers", problems);
    });
  }

  #marketCaps(): Promise<void> {
    const { marketCap } = this.#options.settings.streams;
    if (marketCap === false) return Promise.resolve();
    return this.#every("market caps", this.#onGrid(marketCap.every), async () => {
      await takeMarketCaps(this.#intake, marketCap.every);
    });
  }

  #derivatives(): Promise<void> {
    const { settings } = this.#options;
    const { derivatives, lookups } = settings.streams;
    if (derivatives === false) return Promise.resolve();
    const contractsEvery = (lookups === false ? 3600 : lookups.every) * 1000;
    let contractsAt = Number.NEGATIVE_INFINITY;
    return this.#every("derivatives", this.#onGrid(derivatives.every), async () => {
      const now = this.#intake.clock.monotonic();
      if (this.#directory && now - contractsAt >= contractsEvery) {
        const refresh = (exchangeId: string, type: Parameters<typeof refreshContracts>[2]) =>
          refreshContracts(this.#intake, exchangeId, type);
        this.#supported = await supportedDerivatives(derivatives, this.#directory, refresh);
        contractsAt = now;
      }
      for (const [exchangeId, types] of this.#supported)
        await takeDerivativeTicks(this.#intake, exchangeId, types, derivatives.every);
    });
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
