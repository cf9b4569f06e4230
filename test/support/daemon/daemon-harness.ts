import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { loadSettings } from "../../../src/config/load-settings.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createForwardingLog, type LogEntry } from "../../../src/runtime/log.ts";
import type { StartWorker } from "../../../src/runtime/thread.ts";
import { withReader } from "../../../src/warehouse/reader.ts";
import { type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { expectWarehouseMatches, readCoveredUntil } from "../sync/oracle.ts";
import { type ServiceAddress, serviceEnv } from "../sync/sync-session.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
import { expectSoundFile } from "../warehouse/expect-sound-ledger.ts";
import { startDaemon } from "./start-daemon.ts";

export type DaemonHarness = Awaited<ReturnType<typeof createDaemonHarness>>;
export type RunningDaemon = Awaited<ReturnType<DaemonHarness["startServing"]>>;

const POLL_INTERVAL_MS = 5_000;

interface DaemonHarnessOptions {
  readonly start?: string;
  readonly settings?: string;
  readonly simulator?: SimulatorOptions;
  /** Starts the threads of ingest. Default: they run in this thread; a test that blocks them needs real ones. */
  readonly startWorker?: StartWorker;
}

/** A daemon in this process and a simulator, both on one manual clock. */
export async function createDaemonHarness(options: DaemonHarnessOptions = {}) {
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

  /** Resolves once the dashboard is served. `machine`: the daemon's clock, if it differs from the service's. */
  async function startServing(file = path, machine: Clock = clock, service: ServiceAddress = simulator) {
    closeReaders();
    writeFileSync(secretFile, service.clientSecret, { mode: 0o600 });
    const { MDS_CLIENT_SECRET: _, ...address } = serviceEnv(service);
    const own = { MDS_CLIENT_SECRET_FILE: secretFile, MDS_WAREHOUSE: file, MDS_HTTP_PORT: "0" };
    const env = { ...address, ...own };
    const daemon = startDaemon({
      loaded: acceptAtOnce(loadSettings({ env, directory: folder, file: settingsFile })),
      clock: machine,
      random: seededRandom(seed),
      log,
      startWorker: options.startWorker ?? startIngestInProcess,
    });
    const { done, state } = daemon;
    /** Stops the daemon like SIGTERM; returns the real milliseconds that it took. */
    const stop = async () => {
      closeReaders();
      const stoppedAt = performance.now();
      daemon.stop();
      await clock.runUntil(done);
      return performance.now() - stoppedAt;
    };
    onTestFinished(() => stop().then(undefined, () => {}));
    // Simulated time stands still meanwhile: a busy machine takes no longer than a quiet one.
    const request = async <T>(page: string, read: (response: Response) => Promise<T>) => {
      const endWork = clock.beginWork();
      try {
        return await read(await fetch(new URL(page, state.address)));
      } finally {
        endWork();
      }
    };
    const getPage = (page: string) =>
      request(page, async (response) => ({ status: response.status, text: await response.text() }));
    /** Lets simulated time pass until the condition holds. */
    const runUntil = async (condition: () => unknown): Promise<void> => {
      const met = async () => {
        while (!(await condition())) await clock.sleep(POLL_INTERVAL_MS);
      };
      await clock.runUntil(Promise.race([met(), done]));
    };
    await runUntil(() => state.address !== "");
    return {
      isFilled: () => state.isFilled,
      ...{ done, stop, getPage, runUntil },
      /** What a page is told of the daemon's health when it connects. */
      readProblem: () =>
        request("/api/events", async ({ body }) => {
          let text = "";
          for await (const chunk of body ?? []) {
            text += Buffer.from(chunk).toString();
            // Leaving the loop closes the connection.
            const [, data] = /^data: (.*)\n\n/m.exec(text) ?? [];
            if (data !== undefined) return (JSON.parse(data) as { problem: string | null }).problem;
          }
          throw new Error("the daemon has told nothing");
        }),
      async readMetric(name: string): Promise<number | undefined> {
        const { text } = await getPage("/metrics");
        const found = text.split("\n").find((each) => each.startsWith(`mds_sync_${name} `));
        return found === undefined ? undefined : Number(found.slice(found.lastIndexOf(" ")));
      },
    };
  }

  return {
    ...{ clock, simulator, folder, path, logged, configure, startServing },
    /** Holds the client secret. */
    secretFile,
    /** Resolves once all gaps are filled. `service`: another than the simulator. */
    async startFilled(file = path, service?: ServiceAddress) {
      const running = await startServing(file, clock, service);
      await running.runUntil(running.isFilled);
      return running;
    },
    query(sql: string, file = path): Record<string, unknown>[] {
      const reader = readers.get(file) ?? new Database(file, { readonly: true });
      readers.set(file, reader);
      return reader.prepare(sql).all() as Record<string, unknown>[];
    },
    expectMatchesService(file = path): void {
      withReader(file, (reader) =>
        expectWarehouseMatches(reader, simulator, clock.now(), readCoveredUntil(reader)),
      );
    },
  };
}
