import { dirname, join } from "node:path";
import type { LoadedSettings } from "../config/load-settings.ts";
import { requireServiceSettings } from "../config/service-settings.ts";
import type { DaemonView } from "../dashboard/daemon-status.ts";
import { type DashboardServer, startHttpServer } from "../dashboard/http-server.ts";
import { ReaderThread } from "../dashboard/reader-thread.ts";
import { createRoutes } from "../dashboard/routes.ts";
import { exportInProcess } from "../export/run-export.ts";
import { IngestThread } from "../ingest/thread/ingest-thread.ts";
import { exitCode, Failure, failureCode } from "../model/failure.ts";
import type { Random } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { finishesWithin } from "../runtime/timeouts.ts";
import { createServiceClient } from "../service/client/client.ts";
import { createHeartbeat } from "../service/http/heartbeat.ts";
import type { SyncSettings } from "../sync/context/context.ts";
import { type SyncContext, serviceClock, serviceNow } from "../sync/context/context.ts";
import { classifyError, isWriterLost } from "../sync/context/error-policy.ts";
import { SyncSupervisor } from "../sync/supervisor.ts";
import { describeProblem, notifyServiceManager, runWatchdog } from "../telemetry/watchdog.ts";
import { readJobRuns } from "../warehouse/read/job-runs.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { readLastCrash, recordCrash } from "../warehouse/sqlite/crash-marker.ts";
import { isCorruption, toFailure } from "../warehouse/sqlite/sqlite-errors.ts";
import { assertNoWriter } from "../warehouse/sqlite/writer-lock.ts";
import { DaemonMetrics } from "./daemon-metrics.ts";
import { nightlyJobs } from "./nightly-jobs.ts";
import { runSchedule, type ScheduledJob } from "./scheduler.ts";
import { checkInBackground, monitorStorage } from "./storage-monitor.ts";

interface DaemonOptions {
  readonly loaded: LoadedSettings;
  readonly settings: SyncSettings;
  readonly version: string;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Log;
  /** Aborts when the operator stops the daemon. */
  readonly stopping: AbortSignal;
  /** Called with the dashboard's address once it is served. */
  readonly onServing?: (address: string) => void;
  readonly startProgress?: (context: SyncContext) => { end(): void };
  /** All gaps of the start are filled. */
  readonly onFilled?: (rows: number) => void;
  readonly onLiveRows?: (ticks: number) => void;
}

/** From the stop signal to the exit. Service managers kill a process after ten seconds or less. */
const STOP_TIMEOUT_MS = 4_500;
/** The part of it in which running tasks may end by themselves; slower ones are abandoned. */
const TASKS_STOP_TIMEOUT_MS = 2_000;

/** Runs until it is stopped, or until an error that only a new process can repair. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { loaded, clock, log, stopping, version, random = Math.random } = options;
  const { http, schedule, telemetry, warehouse, retention } = loaded.settings;
  const service = requireServiceSettings(loaded);
  const { path } = warehouse;
  // An unreadable secret is a settings error, so it is reported before the warehouse is touched.
  await service.readSecret();
  const failureStop = new AbortController();
  const signal = AbortSignal.any([stopping, failureStop.signal]);
  const stopWith = (failure: unknown) => {
    if (!signal.aborted) failureStop.abort(failure);
  };
  let stopDeadline: number | undefined;
  signal.addEventListener("abort", () => {
    stopDeadline = clock.monotonic() + STOP_TIMEOUT_MS;
    notifyServiceManager("STOPPING=1");
    log.info({}, "stopping");
  });

  const daemonMetrics = new DaemonMetrics({ clock, version, log });
  const { metrics, streamErrors, stats } = daemonMetrics;
  const client = createServiceClient({
    ...service,
    clock,
    random,
    log,
    onEvent: (event) => daemonMetrics.onClientEvent(event),
  });
  const now = () => serviceNow({ client, clock });
  let hasFeedConnected = false;
  /** REST or the live feed: while REST is down, the live feed works alone. */
  const hasServiceAnswered = () => hasFeedConnected || client.health().lastSuccessAt !== undefined;
  let activity = "starting";
  const setActivity = (what: string) => {
    activity = what;
    notifyServiceManager(`STATUS=${what}`);
  };
  let openingIngest: IngestThread | undefined;
  let ingest: IngestThread | undefined;
  let endError: unknown;
  let reader: Connection | undefined;
  // Only the daemon that owns the warehouse may record a crash.
  const onCrash = (error: unknown) => reader && recordCrash(reader.path, error, now());

  const view: DaemonView = {
    version,
    startedAt: now(),
    now,
    isReady: () => ingest !== undefined && hasServiceAnswered(),
    // Opening may take long (migration, check) without being stuck, so its silence is not a problem.
    problem: () =>
      describeProblem(
        ingest ?? (openingIngest && { blockedBy: openingIngest.blockedBy, oldestCallAgeMs: 0 }),
        client.health().authState,
      ),
    activity: () => activity,
    requestsPerSecond: () => daemonMetrics.requestRate.perSecond(),
    recentErrors: () => daemonMetrics.recentErrors.list(),
  };
  const dashboardReader = new ReaderThread({ path, now });
  const heartbeat = telemetry.heartbeatUrl
    ? createHeartbeat(telemetry.heartbeatUrl, { clock, log })
    : undefined;
  let server: DashboardServer | undefined;
  try {
    // Checked before the port: another daemon on this warehouse also uses the port, and its lock explains more.
    assertNoWriter(path);
    // Bind the port before touching the warehouse.
    const routes = createRoutes({ view, reader: dashboardReader, metrics, clock });
    const onError = (error: unknown) => log.error({ error: String(error) }, "dashboard page failed");
    server = await startHttpServer({ ...http, routes, onError });
    options.onServing?.(server.address);

    // Request the token while the warehouse opens; the first request that needs it reports a failure.
    client.tokens.get(service.baseUrl, signal).catch(() => {});
    setActivity("opening the warehouse");
    const storage = await IngestThread.start({
      path,
      clock: serviceClock(client, clock),
      log,
      signal,
      mayDeferCheck: true,
      onOpening: (thread) => {
        openingIngest = thread;
      },
    });
    ingest = storage;
    reader = openReader(path, SMALL_CACHE_KIB);
    const lastCrash = readLastCrash(reader.path);
    if (lastCrash) daemonMetrics.reportLastCrash(lastCrash);
    // An uncaught exception ends the process right after this handler.
    process.on("uncaughtExceptionMonitor", onCrash);
    const context: SyncContext = { client, ingest, clock, log, stats, signal };
    const progress = options.startProgress?.(context);
    let isFilled = false;
    const supervisor = new SyncSupervisor(context, {
      settings: options.settings,
      wsUrl: service.wsUrl,
      reader,
      random,
      onActivity: setActivity,
      onProblems: (part, problems) => daemonMetrics.setProblems(part, problems),
      onFailure(part, error) {
        daemonMetrics.recordFailure(part, error);
        if (isFatal(error, hasServiceAnswered(), stats.successCount)) stopWith(error);
      },
      onFilled() {
        if (isFilled) return;
        isFilled = true;
        // Everything fetchable is done; what the service no longer has must not hold back the progress bar.
        for (const counts of [stats.forStream("index_ticks"), stats.forStream("ohlcv")])
          counts.doneMicros = counts.plannedMicros;
        progress?.end();
        options.onFilled?.(stats.forStream("index_ticks").inserted + stats.forStream("ohlcv").inserted);
      },
      onLiveCommit(commit, lagMs) {
        daemonMetrics.onLiveCommit(commit, lagMs);
        options.onLiveRows?.(commit.indexTicks.inserted + commit.exchangeTicks.inserted);
      },
      onFeedMessage(message) {
        hasFeedConnected ||= message.kind === "connected";
        daemonMetrics.onFeedMessage(message);
      },
      onFeedEvent: (event) => metrics.observe(event),
    });

    const jobs: ScheduledJob[] = nightlyJobs(context, {
      settings: options.settings,
      nightly: schedule.nightly,
      retention: { exchange_ticks: retention.exchangeTicks, derivative_ticks: retention.derivativeTicks },
      supervisor,
      reader,
      random,
      onProblems: (problems) => streamErrors.setProblems("audit", problems),
      onDifferences: (differences) => daemonMetrics.recordDifferences(differences),
    });
    if (schedule.export) jobs.push(exportJob(schedule.export, options));
    const previousRuns = readJobRuns(reader);
    for (const { job, outcome, endedAt } of previousRuns)
      if (outcome === "ok") metrics.setJobSuccess(job, Date.parse(endedAt) / 1000);
    metrics.onCollect(() => {
      metrics.setIngest(storage.queuedCalls, storage.state);
      metrics.setFeed(supervisor.subscriptions);
    });

    // The service manager's watchdog starts here. READY does not wait for the market-data service.
    notifyServiceManager("READY=1");
    const tasks = [
      supervisor.run(),
      runSchedule({
        jobs,
        clock,
        now: () => (hasServiceAnswered() ? now() : undefined),
        signal,
        log,
        previousRuns,
        storeRun: (run) => storage.call("commitJobRun", run, [], signal),
        onRunEnd(job, outcome, error) {
          daemonMetrics.recordJobEnd(job.name, outcome, error);
          // A failed job runs again later. It ends the daemon only if the warehouse has lost its writer.
          if (!job.isSeparateProcess && isWriterLost(error)) stopWith(error);
        },
      }),
      monitorStorage(context, {
        path,
        reader,
        streamErrors,
        hasFilled: () => isFilled,
        onMeasured(measurement) {
          metrics.setStorage(measurement);
          const { skewMs } = client.health();
          if (skewMs !== undefined) metrics.setClockSkew(-skewMs / 1000);
        },
      }),
      checkInBackground(context, path),
      runWatchdog({
        clock,
        signal,
        ingest: storage,
        ping: () => storage.call("ping", undefined, [], signal),
        problem: view.problem,
        isReady: view.isReady,
        feedWatchdog: () => notifyServiceManager("WATCHDOG=1"),
        onHealthyMinute: () => heartbeat?.send(),
      }),
    ].map((task) => task.catch(stopWith));
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    if (!signal.aborted) await stopped;
    progress?.end();
    await finishesWithin(clock, TASKS_STOP_TIMEOUT_MS, Promise.all(tasks));
    if (failureStop.signal.aborted) throw failureStop.signal.reason;
  } catch (error) {
    // Stopped during the start.
    if (error === stopping.reason) return;
    endError = isCorruption(error) ? toFailure(error, path) : error;
    onCrash(endError);
    throw endError;
  } finally {
    process.off("uncaughtExceptionMonitor", onCrash);
    reader?.close();
    const remainingMs =
      stopDeadline === undefined ? STOP_TIMEOUT_MS : Math.max(0, stopDeadline - clock.monotonic());
    // Keeps a manual clock from advancing while sockets and threads close.
    const release = clock.beginWork();
    const closing = [
      server?.close(),
      dashboardReader.close(),
      heartbeat?.close(),
      client.close(),
      ingest?.close({ withinMs: remainingMs, endedBy: endError }),
    ];
    await finishesWithin(clock, remainingMs, Promise.all(closing)).finally(release);
  }
}

/** The Parquet export beside the warehouse, in its own process. */
function exportJob(cron: string, { loaded, version, clock, log }: DaemonOptions): ScheduledJob {
  const { path } = loaded.settings.warehouse;
  const request = { warehouse: path, to: join(dirname(path), "export"), program: version };
  return {
    name: "export",
    cron,
    isSeparateProcess: true,
    async work(stopping) {
      const { files_written, rows_written, seconds } = await exportInProcess(request, { clock, stopping });
      log.info({ files_written, rows_written, seconds }, "export done");
    },
  };
}

/** Errors that end the daemon. Rejected credentials do so only before they have worked once. */
function isFatal(error: unknown, hasServiceAnswered: boolean, successCount: number): boolean {
  if (error instanceof Failure && error.exit === exitCode.credentials) return !hasServiceAnswered;
  return classifyError(error, successCount) === "stop" && failureCode(error) !== "stopped";
}
