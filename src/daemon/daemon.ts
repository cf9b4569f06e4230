import { once } from "node:events";
import {
  findSharedSettings,
  isSectionSet,
  type LoadedSettings,
  requireServiceSettings,
  type ServiceSettings,
} from "../config/load-settings.ts";
import type { DaemonView } from "../dashboard/daemon-status.ts";
import { IngestThread, type IngestThreadOptions } from "../ingest/thread/ingest-thread.ts";
import { exitCode, Failure, failureCode } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { finishesWithin } from "../runtime/timeouts.ts";
import { type ServeThread, startServeThread } from "../serve/serve-thread.ts";
import { createServiceClient, type ServiceClient } from "../service/client/client.ts";
import { createHeartbeat } from "../service/http/heartbeat.ts";
import { ShareThread } from "../share/thread/share-thread.ts";
import {
  classifyError,
  isWriterLost,
  type SyncContext,
  type SyncSettings,
  serviceNow,
} from "../sync/context/context.ts";
import { computeBackfillProgress } from "../sync/context/run-stats.ts";
import { SyncSupervisor } from "../sync/supervisor.ts";
import { ServiceOutage } from "../telemetry/service-outage.ts";
import {
  describeProblem,
  extendStartTimeout,
  notifyServiceManager,
  runWatchdog,
} from "../telemetry/watchdog.ts";
import { describeUpgrade, estimateUpgradeSeconds } from "../warehouse/migrate.ts";
import { hasData } from "../warehouse/read/status.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { readLastCrash, recordCrash } from "../warehouse/sqlite/crash-marker.ts";
import { isCorruption, toFailure } from "../warehouse/sqlite/sqlite-errors.ts";
import { assertNoWriter } from "../warehouse/sqlite/writer-lock.ts";
import { readJobRuns } from "../warehouse/tables/warehouse-state.ts";
import { startControlServer } from "./control-server.ts";
import { DaemonTelemetry } from "./daemon-telemetry.ts";
import { scheduledJobs } from "./nightly-jobs.ts";
import { PagesServer } from "./pages-server.ts";
import { runSchedule, runStopSteps } from "./scheduler.ts";
import { checkInBackground, monitorStorage } from "./storage-monitor.ts";

interface DaemonOptions extends Pick<IngestThreadOptions, "startWorker"> {
  readonly loaded: LoadedSettings;
  readonly settings: SyncSettings;
  readonly version: string;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Log;
  /** Aborts when the operator stops the daemon. */
  readonly stopping: AbortSignal;
  readonly mayAdopt?: boolean;
  readonly onServing?: (address: string) => void;
  readonly startProgress?: (context: SyncContext) => () => void;
  /** Called once, when all gaps that existed at the start are filled. */
  readonly onFilled?: (rows: number) => void;
  readonly onLiveRows?: (rows: { readonly indexTicks: number; readonly exchangeTicks: number }) => void;
}

/** Maximum time from the stop signal to the exit. Service managers kill a process after ten seconds or less. */
const STOP_TIMEOUT_MS = 4_500;
/** How long the stop waits for running tasks. Slower tasks are abandoned, so that the rest has time to close. */
const TASKS_STOP_TIMEOUT_MS = 2_000;

/** Runs until it is stopped, or until an error that only a new process can repair. Returns whether every step of the stop succeeded. */
export async function runDaemon(options: DaemonOptions): Promise<boolean> {
  const service = requireServiceSettings(options.loaded);
  // An unreadable secret is a settings error, so it is reported before the warehouse is touched.
  await service.readSecret();
  return new Daemon(options, service).run();
}

class Daemon {
  readonly #options: DaemonOptions;
  readonly #service: ServiceSettings;
  readonly #random: Random;
  readonly #startedAtMs: number;
  readonly #failureStop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #telemetry: DaemonTelemetry;
  readonly #client: ServiceClient;
  readonly #view: DaemonView;
  readonly #pages: PagesServer;
  readonly #heartbeat: ReturnType<typeof createHeartbeat> | undefined;
  readonly #shareThread: ShareThread | undefined;
  #supervisor: SyncSupervisor | undefined;
  readonly #outage: ServiceOutage;
  #controlServer: { close(): Promise<void> } | undefined;
  #serveThread: ServeThread | undefined;
  #openingIngest: IngestThread | undefined;
  #ingest: IngestThread | undefined;
  #reader: Connection | undefined;
  #activity = "starting";
  #hasFeedConnected = false;
  #isFilled = false;
  #stopDeadline: number | undefined;

  constructor(options: DaemonOptions, service: ServiceSettings) {
    const { loaded, clock, log, stopping, version, random = Math.random, startWorker } = options;
    this.#options = options;
    this.#service = service;
    this.#random = random;
    this.#startedAtMs = clock.monotonic();
    this.#signal = AbortSignal.any([stopping, this.#failureStop.signal]);
    this.#signal.addEventListener("abort", () => {
      this.#stopDeadline = clock.monotonic() + STOP_TIMEOUT_MS;
      notifyServiceManager("STOPPING=1");
      log.info({}, "stopping");
    });
    const telemetry = new DaemonTelemetry({ clock, version, log });
    this.#telemetry = telemetry;
    this.#client = createServiceClient({
      ...service,
      clock,
      random,
      log,
      onEvent: (event) => {
        telemetry.onClientEvent(event);
        this.#outage.onClientEvent(event);
      },
    });
    this.#outage = new ServiceOutage({
      clock,
      address: new URL(service.baseUrl).origin,
      unhealthyAfterMs: loaded.settings.telemetry.unhealthyAfter * 1000,
      lastFailure: () => this.#client.health().lastFailure,
      hasData: () => !this.#reader || hasData(this.#reader),
    });
    this.#view = {
      version,
      startedAt: this.#now(),
      now: () => this.#now(),
      isReady: () => this.#ingest !== undefined && this.#hasServiceAnswered(),
      hasSelection: () => this.#supervisor?.hasSelection === true,
      problem: () => this.#describeProblem(),
      isCutOff: () => this.#outage.isSilent && this.#supervisor?.subscriptions.isConnected !== true,
      activity: () => {
        const isWaiting = this.#ingest !== undefined && !this.#hasServiceAnswered();
        return isWaiting ? this.#outage.describeWait() : this.#activity;
      },
      backfill: () =>
        this.#isFilled
          ? undefined
          : computeBackfillProgress(telemetry.stats, clock.monotonic() - this.#startedAtMs),
      requestsPerSecond: () => telemetry.requestRate.perSecond(),
      service: () => this.#client.health().condition,
      recentErrors: () => telemetry.recentErrors.list(),
      shared: () => this.#shareThread?.status(),
      serve: () => this.#serveThread?.status,
    };
    const { path } = loaded.settings.warehouse;
    this.#pages = new PagesServer({
      path,
      http: loaded.settings.http,
      view: this.#view,
      metrics: telemetry.metrics,
      clock,
      confirmation: options.settings.withdrawals,
      log,
      startWorker,
    });
    const shared = findSharedSettings(loaded);
    const onFailure = (code: string, message: string) =>
      telemetry.recentErrors.record({ where: "shared warehouse", code, message });
    this.#shareThread = shared && new ShareThread({ ...shared, warehouse: path, clock, log, onFailure });
    const { heartbeatUrl } = loaded.settings.telemetry;
    this.#heartbeat = heartbeatUrl ? createHeartbeat(heartbeatUrl, { clock, log }) : undefined;
  }

  async run(): Promise<boolean> {
    const { clock, stopping, loaded } = this.#options;
    let endError: unknown;
    let isClean = false;
    try {
      const context = await this.#open();
      const endProgress = this.#options.startProgress?.(context);
      const tasks = await this.#start(context, () => endProgress?.());
      if (!this.#signal.aborted) await once(this.#signal, "abort");
      endProgress?.();
      await finishesWithin(clock, TASKS_STOP_TIMEOUT_MS, Promise.all(tasks));
      this.#failureStop.signal.throwIfAborted();
    } catch (error) {
      // The operator stopped the daemon during the start.
      if (error !== stopping.reason) {
        endError = isCorruption(error) ? toFailure(error, loaded.settings.warehouse.path) : error;
        this.#recordCrash(endError);
        throw endError;
      }
    } finally {
      isClean = await this.#stop(endError);
    }
    return isClean;
  }

  /** Opens everything in order. If a step fails, `#stop` closes what is already open. */
  async #open(): Promise<SyncContext> {
    const { loaded, settings, clock, log, onServing } = this.#options;
    const { path } = loaded.settings.warehouse;
    const { stats } = this.#telemetry;
    const client = this.#client;
    const signal = this.#signal;
    // Check the writer lock before the port: a running daemon holds both, and the lock failure explains more.
    assertNoWriter(path);
    // Bind the port before opening the warehouse, so that the dashboard shows the progress of opening.
    const address = await this.#pages.listen();
    onServing?.(address);

    // Request the token while the warehouse opens; the first request that needs it reports a failure.
    client
      .tokensOf(this.#service.baseUrl)
      .get(signal)
      .catch(() => {});
    this.#setActivity("opening the warehouse");
    const ingest = new IngestThread({
      path,
      clock,
      serviceNow: () => client.server.now(),
      log,
      secrets: client.secrets,
      signal,
      startWorker: this.#options.startWorker,
      mayDeferCheck: true,
      onCommit: (news) => this.#pages.notifyCommit(news),
      onUpgrade: (upgrade) => {
        this.#setActivity(`upgrading the warehouse ${describeUpgrade(upgrade)}`);
        extendStartTimeout(estimateUpgradeSeconds(upgrade));
      },
    });
    this.#openingIngest = ingest;
    this.#ingest = await ingest.start();
    this.#setActivity(this.#outage.describeWait());
    const reader = openReader(path, SMALL_CACHE_KIB);
    this.#reader = reader;
    const serve = { ...loaded.settings.serve, warehouse: path, version: this.#options.version };
    if (isSectionSet(loaded, "serve")) this.#serveThread = await startServeThread(serve, { clock, log });
    const lastCrash = readLastCrash(reader.path);
    if (lastCrash) this.#telemetry.reportLastCrash(lastCrash);
    // An uncaught exception ends the process right after this handler.
    process.on("uncaughtExceptionMonitor", this.#recordCrash);
    await this.#shareThread?.start();
    return { client, ingest, reader, settings, clock, random: this.#random, log, stats, signal };
  }

  /** Starts every task. They run until the signal aborts; a task that fails stops the daemon. */
  async #start(context: SyncContext, onFilled: () => void): Promise<Promise<void>[]> {
    const { clock, log, loaded, version } = this.#options;
    const { ingest, reader, signal } = context;
    const telemetry = this.#telemetry;
    const { metrics } = telemetry;
    const { path } = loaded.settings.warehouse;
    const supervisor = this.#createSupervisor(context, onFilled);
    this.#supervisor = supervisor;
    const jobs = scheduledJobs(context, { settings: loaded.settings, supervisor, telemetry, version });
    this.#controlServer = await startControlServer(path, { context, telemetry, supervisor });
    const previousRuns = readJobRuns(reader);
    telemetry.registerJobs(jobs, previousRuns);
    metrics.onCollect(() => {
      metrics.setIngest(ingest.queuedCalls, ingest.state);
      metrics.setRequestLimits(this.#client.health().condition);
      metrics.setFeed(supervisor.subscriptions);
      const shared = this.#shareThread?.status();
      if (shared) metrics.setShared(shared);
      metrics.setServe(this.#serveThread?.status);
    });

    // The service manager starts its watchdog at READY. READY does not wait for the market-data service.
    notifyServiceManager("READY=1");
    const tasks = [
      supervisor.run(),
      runSchedule({
        jobs,
        clock,
        now: () => (this.#hasServiceAnswered() ? this.#now() : undefined),
        signal,
        log,
        previousRuns,
        storeRun: (run) => ingest.call("commitJobRun", run, signal),
        onRunEnd: (job, outcome, error) => {
          telemetry.recordJobEnd(job.name, outcome, error);
          // A failed job runs again later. It ends the daemon only if the warehouse has lost its writer.
          if (!job.isSeparateProcess && isWriterLost(error)) this.#stopWith(error);
        },
      }),
      monitorStorage(context, { path, telemetry, hasFilled: () => this.#isFilled }),
      checkInBackground(context, path),
      runWatchdog({
        clock,
        signal,
        ingest,
        ping: () => ingest.call("ping", undefined, signal),
        problem: this.#view.problem,
        isReady: this.#view.isReady,
        feedWatchdog: () => notifyServiceManager("WATCHDOG=1"),
        onHealthyMinute: () => this.#heartbeat?.send(),
      }),
    ];
    return tasks.map((task) => task.catch((error) => this.#stopWith(error)));
  }

  #createSupervisor(context: SyncContext, onFilled: () => void): SyncSupervisor {
    const options = this.#options;
    const { metrics, stats } = this.#telemetry;
    return new SyncSupervisor(context, {
      wsUrl: this.#service.wsUrl,
      mayAdopt: options.mayAdopt ?? false,
      onActivity: (what) => this.#setActivity(what),
      onProblems: (part, problems) => this.#telemetry.setProblems(part, problems),
      onFailure: (part, error) => {
        this.#telemetry.recordFailure(part, error);
        if (isFatal(error, this.#hasServiceAnswered(), stats.successCount)) this.#stopWith(error);
      },
      onFilled: () => {
        if (this.#isFilled) return;
        this.#isFilled = true;
        // Everything fetchable is done. Ranges that the service no longer has must not keep the progress below 100 %.
        for (const counts of [stats.forStream("index_ticks"), stats.forStream("ohlcv")])
          counts.doneMicros = counts.plannedMicros;
        onFilled();
        options.onFilled?.(stats.forStream("index_ticks").inserted + stats.forStream("ohlcv").inserted);
      },
      onLiveCommit: (commit, lagMs) => {
        this.#telemetry.onLiveCommit(commit, lagMs);
        if (commit.newest !== undefined) this.#outage.recordAnswer();
        options.onLiveRows?.({
          indexTicks: commit.indexTicks.inserted,
          exchangeTicks: commit.exchangeTicks.inserted,
        });
      },
      onFeedMessage: (message) => {
        this.#hasFeedConnected ||= message.kind === "connected";
        if (message.kind === "gap") metrics.increment("feed_dropped_ticks_total", message.dropped);
      },
    });
  }

  #stop(endError: unknown): Promise<boolean> {
    const { clock, log } = this.#options;
    process.off("uncaughtExceptionMonitor", this.#recordCrash);
    const deadline = this.#stopDeadline ?? clock.monotonic() + STOP_TIMEOUT_MS;
    const withinMs = Math.max(0, deadline - clock.monotonic());
    return runStopSteps(
      { clock, log, withinMs },
      {
        reader: () => {
          this.#reader?.close();
          this.#reader = undefined;
        },
        pages: () => this.#pages.close(),
        "control server": () => this.#controlServer?.close(),
        "serve thread": () => this.#serveThread?.close(),
        "share thread": () => this.#shareThread?.close(),
        heartbeat: () => this.#heartbeat?.close(),
        client: () => this.#client.close(),
        ingest: (onFailure) => this.#ingest?.close({ withinMs, endedBy: endError, onFailure }),
      },
    );
  }

  #stopWith(failure: unknown): void {
    if (!this.#signal.aborted) this.#failureStop.abort(failure);
  }

  /** Only the daemon that owns the warehouse, and so has a reader, may record a crash. */
  readonly #recordCrash = (error: unknown): void => {
    if (this.#reader) recordCrash(this.#reader.path, error, this.#now());
  };

  #now(): Micros {
    return serviceNow({ client: this.#client, clock: this.#options.clock });
  }

  /** True once REST or the live feed has answered: the live feed also works while REST is down. */
  #hasServiceAnswered(): boolean {
    return this.#hasFeedConnected || this.#client.health().lastSuccessAt !== undefined;
  }

  #setActivity(what: string): void {
    this.#activity = what;
    notifyServiceManager(`STATUS=${what}`);
  }

  #describeProblem(): string | undefined {
    // An opening thread may be busy for long (migration, check), so an old call does not mean that it is stuck.
    const opening = this.#openingIngest && { blockedBy: this.#openingIngest.blockedBy, oldestCallAgeMs: 0 };
    return (
      describeProblem(this.#ingest ?? opening, this.#client.health().authState) ?? this.#outage.describe()
    );
  }
}

/** Whether an error ends the daemon. Credentials that fail end it only if the service has never answered. */
function isFatal(error: unknown, hasServiceAnswered: boolean, successCount: number): boolean {
  const isSecret = failureCode(error) === "secret_missing";
  if (isSecret || (error instanceof Failure && error.exit === exitCode.credentials))
    return !hasServiceAnswered;
  return classifyError(error, successCount) === "stop" && failureCode(error) !== "stopped";
}
