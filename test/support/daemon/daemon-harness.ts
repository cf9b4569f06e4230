import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { toSyncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { runDaemon } from "../../../src/daemon/daemon.ts";
import { Failure } from "../../../src/model/failure.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createForwardingLog, type LogEntry } from "../../../src/runtime/log.ts";
import type { StartWorker } from "../../../src/runtime/thread.ts";
import { withReader } from "../../../src/warehouse/reader.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { expectWarehouseMatches } from "../sync/oracle.ts";
import type { ServiceAddress } from "../sync/sync-session.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
import { expectSoundFile } from "../warehouse/expect-sound-ledger.ts";

/** A daemon in this process and a simulator, both on one manual clock. */
export interface DaemonHarness {
  readonly clock: ManualClock;
  readonly simulator: Simulator;
  readonly folder: string;
  readonly path: string;
  /** Holds the client secret. */
  readonly secretFile: string;
  readonly logged: readonly LogEntry[];
  configure(yaml: string): void;
  /** Resolves once the dashboard is served. `machine`: the daemon's clock, if it differs from the service's. */
  startServing(file?: string, machine?: Clock): Promise<RunningDaemon>;
  /** Resolves once all gaps are filled. `service`: another than the simulator. */
  startFilled(file?: string, service?: ServiceAddress): Promise<RunningDaemon>;
  query(sql: string, file?: string): Record<string, unknown>[];
  expectMatchesService(file?: string): void;
}

export interface RunningDaemon {
  isFilled(): boolean;
  /** Settles when the daemon ends; rejects with the error that ended it. */
  readonly done: Promise<unknown>;
  /** Lets simulated time pass until the condition holds. */
  runUntil(condition: () => unknown): Promise<void>;
  getPage(path: string): Promise<{ status: number; text: string }>;
  /** What a page is told of the daemon's health when it connects. */
  readProblem(): Promise<string | null>;
  readMetric(name: string): Promise<number | undefined>;
  /** Stops the daemon like SIGTERM; returns the real milliseconds that it took. */
  stop(): Promise<number>;
}

const POLL_INTERVAL_MS = 5_000;

export interface DaemonHarnessOptions {
  readonly start?: string;
  readonly settings?: string;
  readonly simulator?: SimulatorOptions;
  /** Starts the threads of ingest. Default: they run in this thread; a test that blocks them needs real ones. */
  readonly startWorker?: StartWorker;
}

export async function createDaemonHarness(options: DaemonHarnessOptions = {}): Promise<DaemonHarness> {
  const clock = new ManualClock(options.start ?? "2026-03-01T12:00:07Z");
  const simulator = await startSimulator({
    clock,
    port: await findFreePort(),
    ...options.simulator,
    // Compressing takes longer than rendering.
    quirks: { compression: "none", optionStrikes: 2, ...options.simulator?.quirks },
  });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const settingsFile = join(folder, "mds-sync.yaml");
  const path = join(folder, "mds.sqlite");
  copyEmptyWarehouse(path, viewsBesideSync);
  const secretFile = join(temporaryFolder(), "secret");
  onTestFinished(() => expectSoundFile(path, clock.now()));
  const logged: LogEntry[] = [];
  const log = createForwardingLog((entry) => logged.push(entry));
  const configure = (yaml: string) => writeFileSync(settingsFile, yaml);
  // Open while a daemon runs: SQLite parses every view each time a file is opened.
  const readers = new Map<string, Database.Database>();
  const closeReaders = () => {
    for (const reader of readers.values()) reader.close();
    readers.clear();
  };
  onTestFinished(closeReaders);
  configure(options.settings ?? "");

  async function begin(
    file = path,
    machine: Clock = clock,
    service: ServiceAddress = simulator,
  ): Promise<RunningDaemon> {
    closeReaders();
    writeFileSync(secretFile, service.clientSecret, { mode: 0o600 });
    const env: Record<string, string> = {
      MDS_BASE_URL: service.baseUrl,
      MDS_WS_URL: service.wsUrl,
      MDS_CLIENT_ID: service.clientId,
      MDS_CLIENT_SECRET_FILE: secretFile,
      MDS_WAREHOUSE: file,
      MDS_HTTP_PORT: "0",
    };
    const loaded = acceptAtOnce(loadSettings({ env, directory: folder, file: settingsFile }));
    const stopping = new AbortController();
    let address = "";
    let isFilled = false;
    const done = runDaemon({
      loaded,
      settings: toSyncSettings(loaded),
      version: "0.0.0",
      clock: machine,
      random: seededRandom(seed),
      log,
      startWorker: options.startWorker ?? startIngestInProcess,
      stopping: stopping.signal,
      onServing: (served) => {
        address = served;
      },
      onFilled: () => {
        isFilled = true;
      },
    });
    done.catch(() => {});
    const stop = async () => {
      closeReaders();
      const stoppedAt = performance.now();
      stopping.abort(new Failure("stopped", { family: "operator", code: "stopped", exit: 0 }));
      await clock.runUntil(done);
      return performance.now() - stoppedAt;
    };
    onTestFinished(() => stop().then(undefined, () => {}));
    // Simulated time stands still meanwhile: a busy machine takes no longer than a quiet one.
    const get = async (page: string) => {
      const endWork = clock.beginWork();
      try {
        const answer = await fetch(new URL(page, address));
        return { status: answer.status, text: await answer.text() };
      } finally {
        endWork();
      }
    };
    const running: RunningDaemon = {
      isFilled: () => isFilled,
      done,
      stop,
      getPage: get,
      async readProblem() {
        const endWork = clock.beginWork();
        try {
          const { body } = await fetch(new URL("/api/events", address));
          let text = "";
          for await (const chunk of body ?? []) {
            text += Buffer.from(chunk).toString();
            // Leaving the loop closes the connection.
            const [, data] = /^data: (.*)\n\n/m.exec(text) ?? [];
            if (data !== undefined) return (JSON.parse(data) as { problem: string | null }).problem;
          }
          throw new Error("the daemon has told nothing");
        } finally {
          endWork();
        }
      },
      async runUntil(condition) {
        const met = async () => {
          while (!(await condition())) await clock.sleep(POLL_INTERVAL_MS);
        };
        await clock.runUntil(Promise.race([met(), done]));
      },
      async readMetric(name) {
        const { text } = await get("/metrics");
        const found = text.split("\n").find((each) => each.startsWith(`mds_sync_${name} `));
        return found === undefined ? undefined : Number(found.slice(found.lastIndexOf(" ")));
      },
    };
    await running.runUntil(() => address !== "");
    return running;
  }

  async function start(file = path, service?: ServiceAddress): Promise<RunningDaemon> {
    const running = await begin(file, clock, service);
    await running.runUntil(running.isFilled);
    return running;
  }

  return {
    clock,
    simulator,
    folder,
    path,
    secretFile,
    logged,
    configure,
    startServing: begin,
    startFilled: start,
    query(sql, file = path) {
      const reader = readers.get(file) ?? new Database(file, { readonly: true });
      readers.set(file, reader);
      return reader.prepare(sql).all() as Record<string, unknown>[];
    },
    expectMatchesService(file = path) {
      withReader(file, (reader) =>
        expectWarehouseMatches(reader, simulator, clock.now(), readCoveredUntil(reader.database)),
      );
    },
  };
}

/** The timestamp up to which all series are covered: live ticks are confirmed within the hour. */
function readCoveredUntil(database: Database.Database): number {
  return Number(
    database
      .prepare(
        `SELECT min(newest) + 60000000 FROM (SELECT max(r.to_ts) AS newest FROM settled_ranges r
          JOIN targets w ON w.stream = r.stream AND w.series = r.series
          WHERE r.stream = 'index_ticks' AND w.to_ts IS NULL GROUP BY r.series)`,
      )
      .pluck()
      .get(),
  );
}
