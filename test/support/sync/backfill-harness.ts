import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { syncSettings, withSyncSession } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../../src/simulator/simulator.ts";
import { type BackfillReport, type BackfillScope, backfill } from "../../../src/sync/history/backfill.ts";
import { type Verified, verify } from "../../../src/sync/history/verify.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import { TurnedClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { type Agreement, expectTruth } from "./oracle.ts";

/**
 * A few series of every family and two days of ticks: enough to be wrong about, and quick. There are two LUNAs, one of
 * which has ended, and LIBRA never had a price: the service answers 404 for it.
 */
export const smallSync = `
sync:
  ohlcv: { GWA: [LUNA, LIBRA], MWA: [SOL/USD], LX: none }
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: all, days: 2 }
  derivatives: false
`;

export interface EngineOptions {
  readonly simulator?: SimulatorOptions;
  /** The settings file. */
  readonly settings?: string;
  readonly start?: string;
  /** How far this machine's wall clock is ahead of the service's. */
  readonly localSkewMs?: number;
  /** Where the warehouse lies; a folder of its own unless told. */
  readonly folder?: string;
}

export interface EngineUnderTest {
  readonly clock: TurnedClock;
  readonly simulator: Simulator;
  readonly path: string;
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[];
  /** Replaces the settings file. */
  configure(yaml: string): void;
  /** One run of the nightly job, in turned time. */
  run(scope?: BackfillScope, stopping?: AbortSignal): Promise<BackfillReport>;
  /** Compares everything with the service again. */
  verify(): Promise<Verified>;
  /** The oracle, as of the latest run. */
  expectTruth(): Agreement;
  /** Looks into the warehouse. */
  look<T>(work: (reader: Connection) => T): T;
  query(sql: string): Record<string, unknown>[];
  env: Record<string, string>;
}

/** The simulator and the engine on one clock that is turned by hand, with a warehouse on a real disk. */
export async function startEngine(options: EngineOptions = {}): Promise<EngineUnderTest> {
  const clock = new TurnedClock(options.start ?? "2026-03-01T12:00:07Z");
  const simulator = await startSimulator({ clock, ...options.simulator });
  onTestFinished(() => simulator.stop());
  const folder = options.folder ?? temporaryFolder();
  const path = join(folder, "mds.sqlite");
  const file = join(folder, "mds-sync.yaml");
  const logged: EngineUnderTest["logged"] = [];
  const line = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void logged.push({ level, fields, message });
  const log: Log = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const configure = (yaml: string) => writeFileSync(file, yaml);
  configure(options.settings ?? smallSync);
  const env: Record<string, string> = {
    MDS_BASE_URL: simulator.baseUrl,
    MDS_WS_URL: simulator.wsUrl,
    MDS_CLIENT_ID: simulator.clientId,
    MDS_CLIENT_SECRET: simulator.clientSecret,
    MDS_WAREHOUSE: path,
  };
  const look = <T>(work: (reader: Connection) => T) => {
    const reader = openReader(path);
    try {
      return work(reader);
    } finally {
      reader.close();
    }
  };
  let asOf: number | undefined;
  const local = skewed(clock, options.localSkewMs ?? 0);
  return {
    clock,
    simulator,
    path,
    logged,
    configure,
    env,
    look,
    query: (sql) => look((reader) => reader.database.prepare(sql).all() as Record<string, unknown>[]),
    expectTruth: () => look((reader) => expectTruth(reader, simulator, clock.now(), asOf)),
    async run(scope = {}, stopping = new AbortController().signal) {
      const loaded = loadSettings({ env, directory: folder, file });
      const settings = syncSettings(loaded);
      const random = seededRandom(seed);
      const report = await clock.runUntil(
        withSyncSession(loaded, { clock: local, stopping, random }, log, ({ intake, reader }) =>
          backfill(intake, { settings, reader, random, scope }),
        ),
      );
      asOf = report.asOf;
      return report;
    },
    verify() {
      const loaded = loadSettings({ env, directory: folder, file });
      const { refreshSeconds, concurrency } = syncSettings(loaded);
      const random = seededRandom(seed);
      const stopping = new AbortController().signal;
      return clock.runUntil(
        withSyncSession(loaded, { clock: local, stopping, random }, log, ({ intake, reader }) =>
          verify(intake, { reader, random, refreshSeconds, concurrency, sample: undefined }),
        ),
      );
    },
  };
}

/** The same time, but for the wall clock. */
function skewed(clock: Clock, ms: number): Clock {
  return {
    now: () => clock.now() + ms,
    monotonic: () => clock.monotonic(),
    boottime: () => clock.boottime(),
    sleep: (wait, signal) => clock.sleep(wait, signal),
    after: (wait, callback) => clock.after(wait, callback),
    hold: () => clock.hold(),
    waive: () => clock.waive(),
  };
}
