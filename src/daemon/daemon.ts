import { dirname, join } from "node:path";
import type { LoadedSettings } from "../config/load-settings.ts";
import { requireServiceSettings } from "../config/service-settings.ts";
import type { DaemonView } from "../dashboard/daemon-status.ts";
import { type HttpServer, startHttpServer } from "../dashboard/http-server.ts";
import { Readings } from "../dashboard/reader-thread.ts";
import { dashboardPages } from "../dashboard/routes.ts";
import { exportInProcess } from "../export/run-export.ts";
import { Ingest } from "../ingest/thread/ingest-thread.ts";
import { exitCode, Failure } from "../model/failure.ts";
import type { Random } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { doneWithin } from "../runtime/timeouts.ts";
import { createServiceClient } from "../service/client/client.ts";
import { createHeartbeat } from "../service/http/heartbeat.ts";
import type { SyncSettings } from "../sync/context/context.ts";
import { type Intake, serviceClock, serviceNow } from "../sync/context/context.ts";
import { isStorageLost, judge } from "../sync/context/error-policy.ts";
import { CurrentKeeper } from "../sync/supervisor.ts";
import { notifyServiceManager, problemOf, watchOver } from "../telemetry/watchdog.ts";
import { jobRuns } from "../warehouse/read/job-runs.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { noteCrash, readLastCrash } from "../warehouse/sqlite/crash-marker.ts";
import { asFailure, isDamage } from "../warehouse/sqlite/sqlite-errors.ts";
import { assertNoWriter } from "../warehouse/sqlite/writer-lock.ts";
import { DaemonWitness } from "./daemon-metrics.ts";
import { dailyJobs } from "./nightly-jobs.ts";
import { type Job, runSchedule } from "./scheduler.ts";
import { checkBesideTheWork, lookAfterStorage } from "./storage-monitor.ts";

export interface DaemonOptions {
  readonly loaded: LoadedSettings;
  readonly settings: SyncSettings;
  readonly version: string;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Log;
  /** Aborts when the operator asks the daemon to stop. */
  readonly stopping: AbortSignal;
  /** The dashboard's address, as soon as it is served. */
  readonly serving?: (address: string) => void;
  readonly progress?: (intake: Intake) => { end(): void };
  /** What was missing at the start is filled. */
  readonly filled?: (rows: number) => void;
  readonly live?: (ticks: number) => void;
}

/** From the signal to the end. Service managers and people wait ten seconds and less before they kill. */
const STOP_WITHIN_MS = 4_500;
/** Of which all that is under way has so much to end by itself; what does not is left behind. */
const WORK_ENDS_WITHIN_MS = 2_000;

/** Runs until it is told to stop, or until something happens that only a new process can mend. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { loaded, clock, log, stopping, version, random = Math.random } = options;
  const { http, schedule, telemetry, warehouse, retention } = loaded.settings;
  const service = requireServiceSettings(loaded);
  const { path } = warehouse;
  // A secret that cannot be read is a wrong setting, and is said before anything is touched.
  await service.readSecret();
  const ending = new AbortController();
  const signal = AbortSignal.any([stopping, ending.signal]);
  const end = (failure: unknown) => {
    if (!signal.aborted) ending.abort(failure);
  };
  let stopBy: number | undefined;
  signal.addEventListener("abort", () => {
    stopBy = clock.monotonic() + STOP_WITHIN_MS;
    notifyServiceManager("STOPPING=1");
    log.info({}, "stopping");
  });

  const witness = new DaemonWitness({ clock, version, log });
  const { metrics, notes, tally } = witness;
  const client = createServiceClient({
    ...service,
    clock,
    random,
    log,
    observe: (observation) => witness.observe(observation),
  });
  const now = () => serviceNow({ client, clock });
  let hasGreeted = false;
  /** On either way: while REST is out of order, the live feed does its work alone. */
  const hasAnswered = () => hasGreeted || client.health().lastSuccessAt !== undefined;
  let activity = "starting";
  const about = (what: string) => {
    activity = what;
    notifyServiceManager(`STATUS=${what}`);
  };
  let opening: Ingest | undefined;
  let ingest: Ingest | undefined;
  let endedBy: unknown;
  let reader: Connection | undefined;
  // Noted only by a daemon that has the warehouse: another one may have it instead.
  const crashed = (error: unknown) => reader && noteCrash(reader.path, error, now());

  const view: DaemonView = {
    version,
    startedAt: now(),
    now,
    ready: () => ingest !== undefined && hasAnswered(),
    // A warehouse that is migrated or checked may be long in opening, and is not stuck.
    problem: () =>
      problemOf(ingest ?? (opening && { trouble: opening.trouble, silentMs: 0 }), client.health().rest),
    activity: () => activity,
    requestsPerSecond: () => witness.requests.perSecond(),
    recentErrors: () => witness.errors.list(),
  };
  const readings = new Readings({ path, clock, now });
  const heartbeat = telemetry.heartbeatUrl
    ? createHeartbeat(telemetry.heartbeatUrl, { clock, log })
    : undefined;
  let server: HttpServer | undefined;
  try {
    // The settings are known to be sound by now. Where another daemon has the warehouse, it has the port as well.
    assertNoWriter(path);
    // The port is taken before the warehouse is touched.
    const pages = dashboardPages({ view, readings, metrics, clock });
    const failed = (error: unknown) => log.error({ error: String(error) }, "a page failed");
    server = await startHttpServer({ ...http, pages, failed });
    options.serving?.(server.address);

    // Asked for while the warehouse is opened; what goes wrong is met by whoever needs the token.
    client.tokens.get(service.baseUrl, signal).catch(() => {});
    about("opening the warehouse");
    const storage = await Ingest.start({
      path,
      clock: serviceClock(client, clock),
      log,
      signal,
      mayDeferCheck: true,
      opening: (thread) => {
        opening = thread;
      },
    });
    ingest = storage;
    reader = openReader(path, SMALL_CACHE_KIB);
    const lastCrash = readLastCrash(reader.path);
    if (lastCrash) witness.remembers(lastCrash);
    // An exception that nobody catches ends the process right after this.
    process.on("uncaughtExceptionMonitor", crashed);
    const intake: Intake = { client, ingest, clock, log, tally, signal };
    const progress = options.progress?.(intake);
    let isFilled = false;
    const keeper = new CurrentKeeper(intake, {
      settings: options.settings,
      wsUrl: service.wsUrl,
      reader,
      random,
      about,
      problems: (part, problems) => witness.problems(part, problems),
      failed(part, error) {
        witness.failed(part, error);
        if (isFatal(error, hasAnswered(), tally.answers)) end(error);
      },
      filled() {
        if (isFilled) return;
        isFilled = true;
        // What could be fetched has been: the share that is not there any more is nobody's progress.
        for (const counts of [tally.of("index_ticks"), tally.of("ohlcv")]) counts.done = counts.planned;
        progress?.end();
        options.filled?.(tally.of("index_ticks").inserted + tally.of("ohlcv").inserted);
      },
      live(commit, lagMs) {
        witness.live(commit, lagMs);
        options.live?.(commit.indexTicks.inserted + commit.exchangeTicks.inserted);
      },
      heard(message) {
        hasGreeted ||= message.kind === "connected";
        witness.heard(message);
      },
      observeFeed: (observation) => metrics.observe(observation),
    });

    const jobs: Job[] = dailyJobs(intake, {
      settings: options.settings,
      nightly: schedule.nightly,
      retention: { exchange_ticks: retention.exchangeTicks, derivative_ticks: retention.derivativeTicks },
      keeper,
      reader,
      random,
      problems: (problems) => notes.report("audit", problems),
      audited: (differences) => witness.audited(differences),
    });
    if (schedule.export) jobs.push(exportJob(schedule.export, options));
    const remembered = jobRuns(reader);
    for (const { job, outcome, endedAt } of remembered)
      if (outcome === "ok") metrics.jobSucceeded(job, Date.parse(endedAt) / 1000);
    metrics.onLook(() => metrics.ingest(storage.queued, storage.state));

    // From here on the service manager's watchdog counts; that the service answers is not waited for.
    notifyServiceManager("READY=1");
    const parts = [
      keeper.run(),
      runSchedule({
        jobs,
        clock,
        now: () => (hasAnswered() ? now() : undefined),
        signal,
        log,
        remembered,
        remember: (run) => storage.call("commitJobRun", run, [], signal),
        ended(job, outcome, error) {
          witness.jobEnded(job.name, outcome, error);
          // A job has its next time: it may end the daemon only where the warehouse itself has no writer any more.
          if (!job.isApart && isStorageLost(error)) end(error);
        },
      }),
      lookAfterStorage(intake, {
        path,
        reader,
        notes,
        isFilled: () => isFilled,
        measured(round) {
          metrics.storage(round);
          const { skewMs } = client.health();
          if (skewMs !== undefined) metrics.clockSkew(-skewMs / 1000);
        },
      }),
      checkBesideTheWork(intake, path),
      watchOver({
        clock,
        signal,
        pulse: storage,
        ask: () => storage.call("answer", undefined, [], signal),
        problem: view.problem,
        ready: view.ready,
        feedWatchdog: () => notifyServiceManager("WATCHDOG=1"),
        healthyMinute: () => heartbeat?.beat(),
      }),
    ].map((part) => part.catch(end));
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    if (!signal.aborted) await stopped;
    progress?.end();
    await doneWithin(clock, WORK_ENDS_WITHIN_MS, Promise.all(parts));
    if (ending.signal.aborted) throw ending.signal.reason;
  } catch (error) {
    // Told to stop before there was anything to stop.
    if (error === stopping.reason) return;
    endedBy = isDamage(error) ? asFailure(error, path) : error;
    crashed(endedBy);
    throw endedBy;
  } finally {
    process.off("uncaughtExceptionMonitor", crashed);
    reader?.close();
    const withinMs = stopBy === undefined ? STOP_WITHIN_MS : Math.max(0, stopBy - clock.monotonic());
    // Held: on a turned clock the time must not run out while sockets and threads are closed.
    const release = clock.hold();
    const closed = [
      server?.close(),
      readings.close(),
      heartbeat?.close(),
      client.close(),
      ingest?.close({ withinMs, endedBy }),
    ];
    await doneWithin(clock, withinMs, Promise.all(closed)).finally(release);
  }
}

/** The Parquet export beside the warehouse, in a process of its own. */
function exportJob(cron: string, { loaded, version, clock, log }: DaemonOptions): Job {
  const { path } = loaded.settings.warehouse;
  const request = { warehouse: path, to: join(dirname(path), "export"), program: version };
  return {
    name: "export",
    cron,
    isApart: true,
    async work(stopping) {
      const { files_written, rows_written, seconds } = await exportInProcess(request, { clock, stopping });
      log.info({ files_written, rows_written, seconds }, "export done");
    },
  };
}

/** What only a new process, or a person, can mend. Credentials count until they have worked once. */
function isFatal(error: unknown, hasSucceeded: boolean, answers: number): boolean {
  if (error instanceof Failure && error.exit === exitCode.credentials) return !hasSucceeded;
  return judge(error, answers) === "stop" && !(error instanceof Failure && error.code === "stopped");
}
