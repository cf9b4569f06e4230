import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { syncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { runDaemon } from "../../../src/daemon/daemon.ts";
import { Failure } from "../../../src/model/failure.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../../src/simulator/simulator.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { TurnedClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { expectTruth } from "../sync/oracle.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

/** A daemon in this process, on a clock that is turned, against a simulator on the same clock. */
export interface DaemonUnderTest {
  readonly clock: TurnedClock;
  readonly simulator: Simulator;
  readonly folder: string;
  readonly path: string;
  readonly logged: LogLine[];
  configure(yaml: string): void;
  /** Resolves once the pages are served. `machine`: the daemon's own clock, where it differs from the service's. */
  begin(file?: string, machine?: Clock): Promise<Running>;
  /** Resolves once what was missing is filled. */
  start(file?: string): Promise<Running>;
  query(sql: string, file?: string): Record<string, unknown>[];
  expectTruth(file?: string): void;
}

export interface Running {
  isFilled(): boolean;
  /** Settles as the daemon ends; rejects with what ended it. */
  readonly done: Promise<void>;
  /** Lets time run until it is so. */
  until(look: () => unknown): Promise<void>;
  get(path: string): Promise<{ status: number; text: string }>;
  metric(name: string): Promise<number | undefined>;
  /** As SIGTERM does; the real milliseconds that it took. */
  stop(): Promise<number>;
}

const LOOK_EVERY_MS = 5_000;

export async function daemonUnderTest(
  options: { start?: string; settings?: string; simulator?: SimulatorOptions } = {},
): Promise<DaemonUnderTest> {
  const clock = new TurnedClock(options.start ?? "2026-03-01T12:00:07Z");
  const simulator = await startSimulator({ clock, ...options.simulator });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const settingsFile = join(folder, "mds-sync.yaml");
  const path = join(folder, "mds.sqlite");
  const logged: LogLine[] = [];
  const line = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void logged.push({ level, fields, message });
  const log: Log = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const configure = (yaml: string) => writeFileSync(settingsFile, yaml);
  configure(options.settings ?? "");

  async function begin(file = path, machine: Clock = clock): Promise<Running> {
    const env: Record<string, string> = {
      MDS_BASE_URL: simulator.baseUrl,
      MDS_WS_URL: simulator.wsUrl,
      MDS_CLIENT_ID: simulator.clientId,
      MDS_CLIENT_SECRET: simulator.clientSecret,
      MDS_WAREHOUSE: file,
      MDS_HTTP_PORT: "0",
    };
    const loaded = loadSettings({ env, directory: folder, file: settingsFile });
    const stopping = new AbortController();
    let address = "";
    let isFilled = false;
    const done = runDaemon({
      loaded,
      settings: syncSettings(loaded),
      version: "0.0.0",
      clock: machine,
      random: seededRandom(seed),
      log,
      stopping: stopping.signal,
      serving: (served) => {
        address = served;
      },
      filled: () => {
        isFilled = true;
      },
    });
    done.catch(() => {});
    const stop = async () => {
      const asked = performance.now();
      stopping.abort(new Failure("stopped", { family: "operator", code: "stopped", exit: 0 }));
      await clock.runUntil(done);
      return performance.now() - asked;
    };
    onTestFinished(() => stop().then(undefined, () => {}));
    const get = (page: string) =>
      fetch(new URL(page, address)).then(async (answer) => ({
        status: answer.status,
        text: await answer.text(),
      }));
    const running: Running = {
      isFilled: () => isFilled,
      done,
      stop,
      get,
      async until(look) {
        const seen = async () => {
          while (!(await look())) await clock.sleep(LOOK_EVERY_MS);
        };
        await clock.runUntil(Promise.race([seen(), done]));
      },
      async metric(name) {
        const { text } = await get("/metrics");
        const found = text.split("\n").find((each) => each.startsWith(`mds_sync_${name} `));
        return found === undefined ? undefined : Number(found.slice(found.lastIndexOf(" ")));
      },
    };
    await running.until(() => address !== "");
    return running;
  }

  async function start(file = path): Promise<Running> {
    const running = await begin(file);
    await running.until(running.isFilled);
    return running;
  }

  return {
    clock,
    simulator,
    folder,
    path,
    logged,
    configure,
    begin,
    start,
    query(sql, file = path) {
      const database = new Database(file, { readonly: true });
      try {
        return database.prepare(sql).all() as Record<string, unknown>[];
      } finally {
        database.close();
      }
    },
    expectTruth(file = path) {
      const reader = openReader(file);
      try {
        expectTruth(reader, simulator, clock.now(), newestSettled(reader.database));
      } finally {
        reader.close();
      }
    },
  };
}

/** What the daemon has confirmed by now: ticks that came live are confirmed within the hour. */
function newestSettled(database: Database.Database): number {
  return Number(
    database
      .prepare(
        `SELECT min(newest) + 60000000 FROM (SELECT max(r.to_ts) AS newest FROM settled_ranges r
          JOIN wanted_ranges w ON w.stream = r.stream AND w.series = r.series
          WHERE r.stream = 'index_ticks' AND w.to_ts IS NULL GROUP BY r.series)`,
      )
      .pluck()
      .get(),
  );
}
