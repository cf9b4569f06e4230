import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type LoadedSettings, loadSettings } from "../../../src/config/load-settings.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createForwardingLog, type LogEntry } from "../../../src/runtime/log.ts";
import type { BackfillFilter } from "../../../src/sync/history/backfill.ts";
import { planEnds } from "../../../src/sync/history/comparison-plan.ts";
import { checkEnds, verify } from "../../../src/sync/history/verify.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import { defaultQuirks, type Quirks } from "../../simulator/quirks.ts";
import { type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import { ManualClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
import { expectSoundFile, expectSoundLedger } from "../warehouse/expect-sound-ledger.ts";
import { changeFile } from "../warehouse/warehouse-file.ts";
import { expectWarehouseMatches } from "./oracle.ts";
import { inSession, runBackfill, serviceEnv } from "./sync-session.ts";

/**
 * A few series of every index type and two days of ticks: small and quick. There are two LUNAs, one of which
 * has ended. LIBRA never had a price: the service answers 404 for it.
 */
export const smallSyncSettings = `
sync:
  ohlcv: { GWA: [LUNA, LIBRA], MWA: [SOL/USD], LX: none }
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: all, days: 2 }
  derivatives: false
`;

/** The settings of a sync of the ticks of these indices, of one day, and of nothing else. `more`: in YAML. */
export function onlyTicks(
  GWA: string,
  { days = "1", MWA = "none", LX = "none", ...more } = {} as Settings,
): string {
  const intraday = `{ GWA: ${GWA}, MWA: ${MWA}, LX: ${LX}, days: ${days} }`;
  const off = { ohlcv: "false", exchangeTickers: "false", marketCap: "false", derivatives: "false" };
  const streams = Object.entries({ ...off, intraday, ...more });
  return `sync: { ${streams.map(([name, setting]) => `${name}: ${setting}`).join(", ")} }`;
}

type Settings = Readonly<Record<string, string>>;

/** The daily bars of these indices. */
export const barsOf = (GWA: string) => `{ GWA: ${GWA}, MWA: none, LX: none }`;

/**
 * Three months of daily bars and few options: enough for what most tests show. Compressing takes longer than rendering: the tests
 * of the client and of whole processes have compressed bodies.
 */
const smallMarket: Partial<Quirks> = {
  compression: "none",
  optionStrikes: 2,
  listed: { perMille: 1000, on: "2025-12-01" },
};
/** Seconds between two ticks: each takes the time of a test, and few show as much. */
const REFRESH_SECONDS = 120;
/** Every index has all its years, and those that have ended have records. */
export const wholeHistories = { listed: defaultQuirks.listed };

export interface BackfillHarnessOptions {
  readonly simulator?: SimulatorOptions;
  /** The settings file. */
  readonly settings?: string;
  readonly start?: string;
  /** How far the local wall clock is ahead of the service's. */
  readonly localSkewMs?: number;
  /** Folder of the warehouse; a temporary one by default. */
  readonly folder?: string;
  /** The service must repeat claims, as the settings say. Default: one answer counts, so that one run settles everything. */
  readonly mustRepeatClaims?: boolean;
}

export type BackfillHarness = Awaited<ReturnType<typeof startBackfillHarness>>;

/** The simulator and the sync engine on one manual clock, with a warehouse on a real disk. */
export async function startBackfillHarness(options: BackfillHarnessOptions = {}) {
  const clock = new ManualClock(options.start ?? "2026-03-01T12:00:07Z");
  const quirks = { ...smallMarket, ...options.simulator?.quirks };
  const { refreshSeconds = REFRESH_SECONDS } = options.simulator ?? {};
  const simulator = await startSimulator({
    clock,
    port: await findFreePort(),
    ...options.simulator,
    refreshSeconds,
    quirks,
  });
  onTestFinished(() => simulator.stop());
  const folder = options.folder ?? temporaryFolder();
  const path = join(folder, "mds.sqlite");
  if (options.folder === undefined) copyEmptyWarehouse(path, viewsBesideSync);
  const file = join(folder, "mds-sync.yaml");
  const logged: LogEntry[] = [];
  const log = createForwardingLog((entry) => logged.push(entry));
  const configure = (yaml: string) => writeFileSync(file, withPeriod(yaml, refreshSeconds));
  configure(options.settings ?? smallSyncSettings);
  const env: Record<string, string> = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  let open: Connection | undefined;
  const closeReader = () => {
    open?.close();
    open = undefined;
  };
  onTestFinished(() => {
    try {
      if (open) expectSoundLedger(open, clock.now());
      else expectSoundFile(path, clock.now());
    } finally {
      closeReader();
    }
  });
  /** SQLite parses all views whenever a file is opened: one connection reads until the next writer. */
  const inReader = <T>(work: (reader: Connection) => T) => {
    open ??= openReader(path);
    return work(open);
  };
  const load = () => {
    closeReader();
    const loaded = loadSettings({ env, directory: folder, file });
    return options.mustRepeatClaims ? loaded : acceptAtOnce(loaded);
  };
  let asOf: number | undefined;
  const session = { clock, machine: skewWallClock(clock, options.localSkewMs ?? 0), log };
  return {
    ...{ clock, simulator, path, env, withReader: inReader },
    logged: logged as readonly LogEntry[],
    /** Replaces the settings file. */
    configure,
    query: (sql: string) => inReader((reader) => reader.rows<Record<string, unknown>>(sql)),
    /** Compares the warehouse with the service, as of the latest run. */
    expectMatchesService: () =>
      inReader((reader) => expectWarehouseMatches(reader, simulator, clock.now(), asOf)),
    /** Changes the warehouse with plain SQL. */
    write(sql: string): void {
      closeReader();
      changeFile(path, sql);
    },
    /** Runs one backfill on the manual clock. */
    async run(
      scope: BackfillFilter = {},
      stopping = new AbortController().signal,
      options: { readonly mayAdopt?: boolean } = {},
    ) {
      const report = await runBackfill(load(), { ...session, stopping, ...options }, scope);
      asOf = report.asOf;
      return report;
    },
    /** Asks once more below the ends of the histories, as every night. */
    checkEnds() {
      return inSession(load(), session, (syncContext) => {
        const { reader, settings } = syncContext;
        return checkEnds(syncContext, planEnds(reader, settings.refreshSeconds, clock.now() * 1000));
      });
    },
    /** Verifies everything. */
    verify(options: { readonly acceptsWithdrawals?: boolean } = {}) {
      return inSession(load(), session, (syncContext) => verify(syncContext, options));
    },
  };
}

/** Like `startBackfillHarness`, with the ticks of the real service: one every 30 seconds. */
export const startDenseHarness = (options: BackfillHarnessOptions = {}) =>
  startBackfillHarness({ ...options, simulator: { refreshSeconds: 30, ...options.simulator } });

/** The settings with the service's period, unless they name one. */
function withPeriod(yaml: string, seconds: number): string {
  if (yaml.includes("refreshSeconds")) return yaml;
  const period = `service: { refreshSeconds: ${seconds}`;
  return yaml.includes("service: {") ? yaml.replace("service: {", `${period},`) : `${period} }\n${yaml}`;
}

/** With these settings one answer of the service counts, whatever it contradicts. */
export function acceptAtOnce(loaded: LoadedSettings): LoadedSettings {
  const { settings } = loaded;
  const withdrawals = { ...settings.sync.withdrawals, answers: 1 };
  return { ...loaded, settings: { ...settings, sync: { ...settings.sync, withdrawals } } };
}

/** The same clock with another wall time. */
export function skewWallClock(clock: Clock, ms: number): Clock {
  return {
    now: () => clock.now() + ms,
    monotonic: () => clock.monotonic(),
    boottime: () => clock.boottime(),
    sleep: (wait, signal) => clock.sleep(wait, signal),
    after: (wait, callback) => clock.after(wait, callback),
    beginWork: () => clock.beginWork(),
    beginWait: () => clock.beginWait(),
  };
}
