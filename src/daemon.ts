import type { LoadedSettings } from "./config/load-settings.ts";
import { requireServiceSettings } from "./config/service-settings.ts";
import type { DaemonView } from "./dashboard/daemon-view.ts";
import { type HttpServer, startHttpServer } from "./dashboard/http-server.ts";
import { dashboardPages } from "./dashboard/pages.ts";
import { Readings } from "./dashboard/readings.ts";
import { Ingest } from "./ingest/ingest-thread.ts";
import { exitCode, Failure } from "./model/failure.ts";
import type { Clock } from "./runtime/clock.ts";
import type { Log } from "./runtime/log.ts";
import { loop } from "./runtime/loop.ts";
import type { Random } from "./runtime/random.ts";
import { createHeartbeat } from "./service/heartbeat.ts";
import { createServiceClient } from "./service/service-client.ts";
import { type Intake, serviceClock, serviceNow } from "./sync/intake.ts";
import { dailyJobs } from "./sync/jobs.ts";
import { CurrentKeeper } from "./sync/keep-current.ts";
import { type Job, runSchedule } from "./sync/schedule.ts";
import { StreamNotes } from "./sync/stream-notes.ts";
import type { SyncSettings } from "./sync/sync-settings.ts";
import { Tally } from "./sync/tally.ts";
import { judge } from "./sync/trouble.ts";
import { FeedSubscriptions } from "./telemetry/feed-standing.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "./telemetry/recent-activity.ts";
import { notifyServiceManager } from "./telemetry/service-manager.ts";
import { problemOf, watchOver } from "./telemetry/vital-signs.ts";
import { freeBytes } from "./warehouse/disk.ts";
import { jobRuns } from "./warehouse/job-runs.ts";
import { quickCheck } from "./warehouse/quick-check.ts";
import { openReader } from "./warehouse/reader.ts";
import { daysUntilFull, sizeSamples } from "./warehouse/size-history.ts";
import { warehouseBytes } from "./warehouse/wal.ts";

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
  /** The work of the job `export`, at the times of `schedule.export`. */
  readonly exportWork?: (signal: AbortSignal) => Promise<void>;
}

const STORAGE_EVERY_MS = 60_000;
/** A WAL of this size has a reader in its way that is worth naming. */
const LONG_WAL_BYTES = 256 * 1024 * 1024;
/** All that is under way ends with the signal; what does not within this time is left behind. */
const STOP_PATIENCE_MS = 2_000;
/** The check has time; what there is to catch up with at a start has not. */
const CHECK_AFTER_MS = 15_000;
const CHECK_PATIENCE_MS = 3_600_000;

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
      if (isFatal(error, hasAnswered(), tally.answers)) end(error);
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
    if (schedule.export && options.exportWork)
      jobs.push({ name: "export", cron: schedule.export, work: options.exportWork });
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
          metrics.job(job, outcome);
          if (error !== undefined) broken(job, error);
        },
      }),
      loop({
        clock,
        signal,
        everyMs: () => STORAGE_EVERY_MS,
        async work() {
          const { walBytes, isTruncated, holders } = await storage.call(
            "checkStorage",
            undefined,
            [],
            signal,
          );
          if (!isTruncated && walBytes > LONG_WAL_BYTES)
            log.warn({ walBytes, readers: holders.readers }, "a reader keeps the WAL from shrinking");
          const bytes = warehouseBytes(path);
          // A first backfill says nothing about the days to come.
          if (isFilled) await storage.call("commitSize", bytes + walBytes, [], signal);
          const free = freeBytes(path);
          const full = daysUntilFull(sizeSamples(reader), free);
          metrics.storage({ warehouseBytes: bytes, walBytes, freeBytes: free, daysUntilFull: full });
          const { skewMs, parked } = client.health();
          if (skewMs !== undefined) metrics.clockSkew(-skewMs / 1000);
          const changed = notes.take(parked);
          if (changed) await storage.call("commitStreamNotes", changed, [], signal);
        },
        failed: end,
      }),
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
      storage.isChecked ? Promise.resolve() : checkFile(path, { storage, clock, log, signal }),
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

/**
 * After a crash a large file is checked beside the work: SQLite's promise is that a crash leaves it sound, and a restart
 * must not cost minutes of ticks that nobody can fetch later. If it is damaged all the same, the next start sets it aside.
 */
async function checkFile(
  path: string,
  { storage, clock, log, signal }: Pick<Intake, "clock" | "log" | "signal"> & { storage: Ingest },
): Promise<void> {
  log.info({}, "the warehouse was not closed in order: it is checked beside the work");
  await clock.sleep(CHECK_AFTER_MS, signal);
  const checked = await quickCheck(path, { clock, deadlineMs: CHECK_PATIENCE_MS, signal });
  log.info({ verdict: checked.verdict }, "the warehouse was checked");
  if (checked.verdict === "unfinished") return;
  const damage = checked.verdict === "damaged" ? checked.finding : undefined;
  await storage.call("noteCheck", damage, [], signal);
  if (damage === undefined) return;
  throw new Failure(`${path} is damaged (${damage})`, {
    family: "operator",
    code: "db_corrupt",
    remedy: "start again: the file is set aside, never deleted, and a new one is filled",
  });
}

/** What only a new process, or a person, can mend. Credentials count until they have worked once. */
function isFatal(error: unknown, hasSucceeded: boolean, answers: number): boolean {
  if (error instanceof Failure && error.exit === exitCode.credentials) return !hasSucceeded;
  return judge(error, answers) === "stop" && !(error instanceof Failure && error.code === "stopped");
}
