import { dirname, join } from "node:path";
import type { LoadedSettings } from "./config/load-settings.ts";
import { requireServiceSettings } from "./config/service-settings.ts";
import type { DaemonView } from "./dashboard/daemon-view.ts";
import { type HttpServer, startHttpServer } from "./dashboard/http-server.ts";
import { dashboardPages } from "./dashboard/pages.ts";
import { Readings } from "./dashboard/readings.ts";
import { exportInProcess } from "./export/export-in-process.ts";
import { Ingest } from "./ingest/ingest-thread.ts";
import { exitCode, Failure } from "./model/failure.ts";
import type { Clock } from "./runtime/clock.ts";
import type { Log } from "./runtime/log.ts";
import type { Random } from "./runtime/random.ts";
import { createHeartbeat } from "./service/heartbeat.ts";
import { createServiceClient } from "./service/service-client.ts";
import { type Intake, serviceClock, serviceNow } from "./sync/intake.ts";
import { dailyJobs } from "./sync/jobs.ts";
import { CurrentKeeper } from "./sync/keep-current.ts";
import { type Job, runSchedule } from "./sync/schedule.ts";
import { checkBesideTheWork, lookAfterStorage } from "./sync/storage-rounds.ts";
import { StreamNotes } from "./sync/stream-notes.ts";
import type { SyncSettings } from "./sync/sync-settings.ts";
import { Tally } from "./sync/tally.ts";
import { isStorageLost, judge } from "./sync/trouble.ts";
import { FeedSubscriptions } from "./telemetry/feed-standing.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "./telemetry/recent-activity.ts";
import { notifyServiceManager } from "./telemetry/service-manager.ts";
import { problemOf, watchOver } from "./telemetry/vital-signs.ts";
import { jobRuns } from "./warehouse/job-runs.ts";
import { openReader } from "./warehouse/reader.ts";

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

/** All that is under way ends with the signal; what does not within this time is left behind. */
const STOP_PATIENCE_MS = 2_000;
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

  const metrics = new Metrics(clock, version);
  const rate = new RequestRate(clock);
  const errors = new RecentErrors(clock);
  const notes = new StreamNotes();
  const tally = new Tally((stream, { alarm, ...counts }) => {
    notes.worked(stream);
    metrics.commit(stream, "rest", counts);
    if (alarm !== undefined) metrics.alarm(alarm);
  });
  const client = createServiceClient({
    ...service,
    clock,
    random,
    log,
    observe(observation) {
      tally.observe(observation);
      metrics.observe(observation);
      if (observation.kind === "request") rate.count();
    },
  });
  const now = () => serviceNow({ client, clock });
  const hasAnswered = () => client.health().lastSuccessAt !== undefined;
  let activity = "starting";
  let ingest: Ingest | undefined;

  const view: DaemonView = {
    version,
    startedAt: now(),
    now,
    ready: () => ingest !== undefined && hasAnswered(),
    problem: () => problemOf(ingest, client.health().rest),
    activity: () => activity,
    requestsPerSecond: () => rate.perSecond(),
    recentErrors: () => errors.list(),
  };
  const readings = new Readings({ path, clock, now });
  const heartbeat = telemetry.heartbeatUrl
    ? createHeartbeat(telemetry.heartbeatUrl, { clock, log })
    : undefined;
  let server: HttpServer | undefined;
  try {
    // The settings are known to be sound by now; the port is taken before the warehouse is touched.
    const pages = dashboardPages({ view, readings, metrics, clock });
    const failed = (error: unknown) => log.error({ error: String(error) }, "a page failed");
    server = await startHttpServer({ ...http, pages, failed });
    options.serving?.(server.address);

    // Asked for while the warehouse is opened; what goes wrong is met by whoever needs the token.
    client.tokens.get(service.baseUrl, signal).catch(() => {});
    ingest = await Ingest.start({ path, clock: serviceClock(client, clock), log, mayDeferCheck: true });
    const storage = ingest;
    const reader = openReader(path);
    const intake: Intake = { client, ingest, clock, log, tally, signal };
    const progress = options.progress?.(intake);
    const subscriptions = new FeedSubscriptions();
    const broken = (part: string, error: unknown) => {
      const code = error instanceof Failure ? error.code : "unexpected";
      const message = error instanceof Failure ? error.line : String(error);
      errors.note({ where: part, code, message });
      log.error({ part, code, message }, "a part of the work failed and is tried again");
    };
    let isFilled = false;
    const keeper = new CurrentKeeper(intake, {
      settings: options.settings,
      wsUrl: service.wsUrl,
      reader,
      random,
      about: (what) => {
        activity = what;
        notifyServiceManager(`STATUS=${what}`);
      },
      problems: (part, problems) => {
        notes.report(part, problems);
        for (const { stream, code, message } of problems) errors.note({ where: stream, code, message });
      },
      failed(part, error) {
        notes.failed(part, error);
        broken(part, error);
        if (isFatal(error, hasAnswered(), tally.answers)) end(error);
      },
      filled() {
        if (isFilled) return;
        isFilled = true;
        // What could be fetched has been: the share that is not there any more is nobody's progress.
        for (const counts of [tally.of("index_ticks"), tally.of("ohlcv")]) counts.done = counts.planned;
        progress?.end();
        options.filled?.(tally.of("index_ticks").received + tally.of("ohlcv").received);
      },
      live({ indexTicks, exchangeTicks, unknown }, lagMs) {
        metrics.liveLag(lagMs);
        metrics.commit("index_ticks", "live", indexTicks);
        metrics.commit("exchange_ticks", "live", exchangeTicks);
        metrics.unknownEvents(unknown);
        options.live?.(indexTicks.inserted + exchangeTicks.inserted);
      },
      heard(message) {
        metrics.feed(subscriptions.hear(message));
        if (message.kind === "gap") metrics.droppedTicks(message.dropped);
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
      audited: (differences) => {
        for (const { stream } of differences) metrics.auditDifference(stream);
      },
    });
    if (schedule.export) {
      const request = { warehouse: path, to: join(dirname(path), "export"), program: version };
      jobs.push({
        name: "export",
        cron: schedule.export,
        isApart: true,
        async work(until) {
          const { files_written, rows_written, seconds } = await exportInProcess(request, {
            clock,
            stopping: until,
          });
          log.info({ files_written, rows_written, seconds }, "export done");
        },
      });
    }
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
          metrics.job(job.name, outcome);
          if (error === undefined) return;
          broken(job.name, error);
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
    notifyServiceManager("STOPPING=1");
    log.info({}, "stopping");
    progress?.end();
    const hurry = new AbortController();
    await Promise.race([Promise.all(parts), clock.sleep(STOP_PATIENCE_MS, hurry.signal).catch(() => {})]);
    hurry.abort();
    reader.close();
    if (ending.signal.aborted) throw ending.signal.reason;
  } finally {
    await server?.close();
    await readings.close();
    await heartbeat?.close();
    await client.close();
    await ingest?.close();
  }
}

/** What only a new process, or a person, can mend. Credentials count until they have worked once. */
function isFatal(error: unknown, hasSucceeded: boolean, answers: number): boolean {
  if (error instanceof Failure && error.exit === exitCode.credentials) return !hasSucceeded;
  return judge(error, answers) === "stop" && !(error instanceof Failure && error.code === "stopped");
}
