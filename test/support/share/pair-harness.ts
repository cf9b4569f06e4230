import { join } from "node:path";
import { onTestFinished } from "vitest";
import { toSyncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { requireServiceSettings } from "../../../src/config/service-settings.ts";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import { runShareLoop } from "../../../src/share/thread/share-loop.ts";
import type { SyncSettings } from "../../../src/sync/context/context.ts";
import { RunStats } from "../../../src/sync/context/run-stats.ts";
import { SyncSupervisor } from "../../../src/sync/supervisor.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { renameJournal } from "../../../src/warehouse/tables/journal.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { ManualClock } from "../manual-clock.ts";
import { PASSWORD, type TestPostgres } from "../postgres-server.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { serviceEnv } from "../sync/sync-session.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { timeLimit } from "../time-limit.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";

/** How far simulated time moves between two looks at the condition, and how long the lease's real time does. */
const STEP_SECONDS = 10;
const LOOK_INTERVAL_MS = 50;
/** The pauses of the forwarders are this many times shorter than they ask for. */
const HASTE = 4;

export interface PairOptions {
  readonly server: TestPostgres;
  readonly database: string;
  readonly leaseSeconds: number;
  readonly sync: Record<string, unknown>;
}

export interface Worker {
  readonly name: string;
  readonly path: string;
  readonly failures: readonly unknown[];
  /** Stops as the operator does: gives the lease back. */
  stop(): Promise<void>;
  /** Stops everything without a word, as a crash does. */
  kill(): Promise<void>;
}

/** A pair of daemons without their processes: the sync on one manual clock, the lease on the database's. */
export class PairHarness {
  readonly clock: ManualClock;
  readonly simulator: Simulator;
  readonly #options: PairOptions;

  private constructor(options: PairOptions, clock: ManualClock, simulator: Simulator) {
    this.#options = options;
    this.clock = clock;
    this.simulator = simulator;
  }

  static async start(options: PairOptions): Promise<PairHarness> {
    const clock = new ManualClock("2026-03-01T12:00:07Z");
    const simulator = await startSimulator({ clock });
    onTestFinished(() => simulator.stop());
    return new PairHarness(options, clock, simulator);
  }

  /** Lets simulated time pass until the condition holds. */
  async runUntil(condition: () => Promise<boolean> | boolean, maxMs = timeLimit(60_000)): Promise<void> {
    const until = systemClock.monotonic() + maxMs;
    while (!(await condition())) {
      if (systemClock.monotonic() > until) throw new Error(`condition not met: ${condition}`);
      await this.clock.runUntil(this.clock.sleep(STEP_SECONDS * 1000));
      await systemClock.sleep(LOOK_INTERVAL_MS);
    }
  }

  async startWorker(name: string): Promise<Worker> {
    const { clock, simulator } = this;
    const { server, database, leaseSeconds, sync } = this.#options;
    const path = join(temporaryFolder(), "mds.sqlite");
    copyEmptyWarehouse(path, viewsBesideSync);
    const file = openWriter(path, { clock });
    renameJournal(file.connection);
    file.close();
    const env = {
      ...serviceEnv(simulator),
      MDS_WAREHOUSE: path,
    };
    const loaded = acceptAtOnce(loadSettings({ env, directory: temporaryFolder() }));
    const defaults = toSyncSettings(loaded);
    const settings: SyncSettings = {
      ...defaults,
      confirmEvery: 60,
      streams: { ...defaults.streams, ...sync },
    };
    const service = requireServiceSettings(loaded);
    const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const random = seededRandom(seed);
    const stats = new RunStats();
    const client = createServiceClient({
      ...service,
      clock,
      random,
      log,
      onEvent: (event) => stats.onEvent(event),
    });
    const { secrets } = client;
    const ingest = await IngestThread.start({
      path,
      clock,
      serviceNow: client.serverNow,
      log,
      secrets,
      startWorker: startIngestInProcess,
    });
    const reader = openReader(path);
    const [syncStop, shareStop] = [new AbortController(), new AbortController()];
    const failures: unknown[] = [];
    const { withdrawals } = settings;
    const context = { client, ingest, clock, log, stats, withdrawals, signal: syncStop.signal };
    const nothing = () => {};
    const supervisor = new SyncSupervisor(context, {
      settings,
      wsUrl: service.wsUrl,
      reader,
      random,
      onFailure: (_, error) => void failures.push(error),
      onProblems: nothing,
      onActivity: nothing,
      onFilled: nothing,
      onLiveCommit: nothing,
      onFeedMessage: nothing,
      onFeedEvent: nothing,
    });
    let isKilled = false;
    /** Killed, and nothing of the forwarder is under way any more. */
    let hasEnded = false;
    const never = new Promise<never>(() => {});
    const shareClock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        await systemClock.sleep(ms / HASTE, signal);
        hasEnded = isKilled;
        return isKilled ? never : undefined;
      },
    };
    const sharing = runShareLoop({
      warehouse: path,
      url: server.url(database),
      role: "pair",
      name,
      leaseSeconds,
      clock: shareClock,
      random,
      signal: shareStop.signal,
      askPassword: async () => PASSWORD,
      report: () => {},
    });
    const running = supervisor
      .run()
      .catch((error: unknown) => {
        if (!syncStop.signal.aborted) failures.push(error);
      })
      .then(async () => {
        await client.close();
        await ingest.close();
      });
    const stopSync = async () => {
      syncStop.abort();
      await clock.runUntil(running);
    };
    const worker: Worker = {
      name,
      path,
      failures,
      async stop() {
        if (isKilled) return;
        await stopSync();
        shareStop.abort();
        await sharing;
      },
      async kill() {
        isKilled = true;
        await stopSync();
        // A statement that is under way would renew what the test ends by hand.
        while (!hasEnded) await systemClock.sleep(LOOK_INTERVAL_MS);
      },
    };
    onTestFinished(async () => {
      await worker.stop();
      reader.close();
    });
    return worker;
  }
}
