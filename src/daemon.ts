import { schedule } from "node-cron";
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
import { createServiceClient } from "./service/service-client.ts";
import { type Intake, serviceClock, serviceNow } from "./sync/intake.ts";
import { CurrentKeeper } from "./sync/keep-current.ts";
import type { SyncSettings } from "./sync/sync-settings.ts";
import { Tally } from "./sync/tally.ts";
import { judge } from "./sync/trouble.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "./telemetry/recent-activity.ts";
import { notifyServiceManager } from "./telemetry/service-manager.ts";
import { freeBytes } from "./warehouse/disk.ts";
import { openReader } from "./warehouse/reader.ts";
import { warehouseBytes } from "./warehouse/wal.ts";

export interface DaemonOptions {
  readonly loaded: LoadedSettings;
  readonly settings: SyncSettings;
  readonly version: string;
  readonly clock: Clock;
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

const STORAGE_EVERY_MS = 60_000;
/** With live ticks or polls at work, so long without one commit means that something is stuck. */
const STUCK_MS = 10 * 60_000;

/** Runs until it is told to stop, or until something happens that only a new process can mend. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { loaded, clock, log, stopping, version } = options;
  const service = requireServiceSettings(loaded);
  const { path } = loaded.settings.warehouse;
  const ending = new AbortController();
  const signal = AbortSignal.any([stopping, ending.signal]);
  const end = (failure: unknown) => {
    if (!ending.signal.aborted) ending.abort(failure);
  };

  const metrics = new Metrics(clock, version);
  const rate = new RequestRate(clock);
  const errors = new RecentErrors(clock);
  const tally = new Tally();
  const client = createServiceClient({
    ...service,
    clock,
    random: Math.random,
    log,
    observe(observation) {
      tally.observe(observation);
      metrics.observe(observation);
      if (observation.kind === "request") rate.count();
    },
  });
  const now = () => serviceNow({ client, clock });
  let activity = "starting";
  let ingest: Ingest | undefined;
  let lastProgress = clock.monotonic();

  const view: DaemonView = {
    version,
    startedAt: now(),
    now,
    ready: () => ingest !== undefined && client.health().lastSuccessAt !== undefined,
    problem: () => problemOf(client.health().rest, ingest?.state, clock.monotonic() - lastProgress),
    activity: () => activity,
    requestsPerSecond: () => rate.perSecond(),
    recentErrors: () => errors.list(),
  };
  const readings = new Readings({ path, clock, now });
  let server: HttpServer | undefined;
  try {
    // The settings are known to be sound by now; the port is taken before the warehouse is touched.
    const { host, port, allowedHosts } = loaded.settings.http;
    const pages = dashboardPages({ view, readings, metrics, clock });
    const failed = (error: unknown) => log.error({ error: String(error) }, "a page failed");
    server = await startHttpServer({ host, port, allowedHosts, pages, failed });
    options.serving?.(server.address);

    ingest = await Ingest.start({ path, clock: serviceClock(client, clock), log });
    const storage = ingest;
    const reader = openReader(path);
    const intake: Intake = { client, ingest, clock, log, tally, signal };
    const progress = options.progress?.(intake);
    let isFilled = false;
    const keeper = new CurrentKeeper(intake, {
      settings: options.settings,
      wsUrl: service.wsUrl,
      reader,
      random: Math.random,
      about: (what) => {
        activity = what;
        notifyServiceManager(`STATUS=${what}`);
      },
      problems: (problems) => {
        for (const { stream, code, message } of problems) errors.note({ where: stream, code, message });
      },
      failed(part, error) {
        const code = error instanceof Failure ? error.code : "unexpected";
        const message = error instanceof Failure ? error.line : String(error);
        errors.note({ where: part, code, message });
        log.error({ part, code, message }, "a part of the work failed and is tried again");
        if (isFatal(error, client.health().lastSuccessAt !== undefined, tally.answers)) end(error);
      },
      filled() {
        if (isFilled) return;
        isFilled = true;
        progress?.end();
        options.filled?.(tally.of("index_ticks").received + tally.of("ohlcv").received);
      },
      live(commit) {
        const { indexTicks, exchangeTicks } = commit;
        lastProgress = clock.monotonic();
        metrics.commit("index_ticks", "live", indexTicks);
        metrics.commit("exchange_ticks", "live", exchangeTicks);
        options.live?.(indexTicks.inserted + exchangeTicks.inserted);
      },
      observeFeed: (observation) => metrics.observe(observation),
    });

    const nightly = loaded.settings.schedule.nightly;
    const job = nightly
      ? schedule(
          nightly,
          () =>
            keeper.refresh().then(
              () => keeper.lookAgain(),
              (error) => log.error({ error: String(error) }, "the nightly job failed"),
            ),
          {
            timezone: "UTC",
            noOverlap: true,
            name: "nightly",
          },
        )
      : undefined;
    notifyServiceManager("READY=1");
    const storageLoop = loop({
      clock,
      signal,
      everyMs: () => STORAGE_EVERY_MS,
      async work() {
        const { walBytes } = await storage.call("checkStorage", undefined, [], signal);
        lastProgress = clock.monotonic();
        metrics.storage({ warehouseBytes: warehouseBytes(path), walBytes, freeBytes: freeBytes(path) });
        metrics.ingest(storage.queued, storage.state);
        const { skewMs } = client.health();
        if (skewMs !== undefined) metrics.clockSkew(skewMs / 1000);
        // The watchdog is fed by work that reached the disk, not by a timer that only shows that time passes.
        if (view.problem() === undefined) notifyServiceManager("WATCHDOG=1");
      },
      failed: end,
    });
    try {
      const stopped = new Promise<void>((resolve) =>
        signal.addEventListener("abort", () => resolve(), { once: true }),
      );
      await Promise.race([keeper.run().catch(end), stopped]);
      await stopped;
      notifyServiceManager("STOPPING=1");
      await storageLoop;
    } finally {
      progress?.end();
      await job?.destroy();
      reader.close();
    }
    if (ending.signal.aborted) throw ending.signal.reason;
  } finally {
    await server?.close();
    await readings.close();
    await client.close();
    await ingest?.close();
  }
}

/** What only a new process, or a person, can mend. Credentials count until they have worked once. */
function isFatal(error: unknown, hasSucceeded: boolean, answers: number): boolean {
  if (error instanceof Failure && error.exit === exitCode.credentials) return !hasSucceeded;
  return judge(error, answers) === "stop" && !(error instanceof Failure && error.code === "stopped");
}

function problemOf(auth: string, storage: Ingest["state"] | undefined, idleMs: number): string | undefined {
  if (storage === "disk_full") return "the disk is full: free some space, the sync resumes by itself";
  if (storage === "db_locked") return "another program holds the warehouse's write lock";
  if (auth === "credentials_rejected" || auth === "auth_failed")
    return `the service refuses the credentials (${auth})`;
  return idleMs > STUCK_MS
    ? `nothing has been written for ${Math.round(idleMs / 60_000)} minutes`
    : undefined;
}
