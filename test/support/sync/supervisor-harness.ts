import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { toSyncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings, requireServiceSettings } from "../../../src/config/load-settings.ts";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import { MICROS_PER_MS } from "../../../src/model/time.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import type { Problem, SyncSettings } from "../../../src/sync/context/context.ts";
import { RunStats } from "../../../src/sync/context/run-stats.ts";
import { SyncSupervisor } from "../../../src/sync/supervisor.ts";
import { openReader, withReader } from "../../../src/warehouse/reader.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import type { Quirks } from "../../simulator/quirks.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
import { expectSoundFile } from "../warehouse/expect-sound-ledger.ts";
import { gapsAt } from "../warehouse/gaps.ts";
import { acceptAtOnce } from "./backfill-harness.ts";
import { expectWarehouseMatches } from "./oracle.ts";
import { serviceEnv } from "./sync-session.ts";

/** Two hours of records before the start: what is filled then shows nothing about following. */
const youngMarket: Partial<Quirks> = {
  compression: "none",
  optionStrikes: 2,
  listed: { perMille: 1000, on: "2026-03-01" },
};

export const all = { kind: "all" } as const;
export const none = { kind: "none" } as const;
export const list = (...names: string[]) => ({ kind: "list", names }) as const;
export const assetsOf = (...names: string[]) => ({ GWA: list(...names), MWA: none, LX: none });
/** A day of ticks of these assets. */
export const ticksOf = (...names: string[]) => ({ ...assetsOf(...names), days: 1 });
const off = false as const;
const nothing = { ohlcv: off, intraday: off, exchangeTickers: off, marketCap: off, derivatives: off };

export interface SupervisorHarnessOptions {
  readonly simulator?: SimulatorOptions;
  /** The `sync` part of the settings. The streams that it does not name are off. */
  readonly sync: Record<string, unknown>;
  readonly start?: string;
  /** A longer period makes simulated hours faster, because there are fewer ticks. */
  readonly refreshSeconds?: number;
  readonly maxRequestsPerSecond?: number;
  /** Seconds between confirmations. Hourly by default: few enough for a test to count the other polls. */
  readonly confirmEvery?: number;
  /** The service must repeat claims, as the settings say. Default: one answer counts. */
  readonly mustRepeatClaims?: boolean;
  /** How far time moves on at each reading of the clock. Default: not at all. */
  readonly creepMs?: () => number;
}

export type QueryRow = Record<string, unknown>;

/** The supervisor and the simulator on one manual clock, with a warehouse on a real disk. */
export class SupervisorHarness {
  readonly clock: ManualClock;
  readonly simulator: Simulator;
  readonly path: string;
  readonly problems = new Map<string, readonly Problem[]>();
  /** The part of each problem report, in order. */
  readonly reportedParts: string[] = [];
  readonly failures: unknown[] = [];
  readonly logged: { fields: Record<string, unknown>; message: string }[] = [];
  isFilled = false;
  activity = "";
  settings: SyncSettings;
  supervisor: SyncSupervisor | undefined;
  #queryReader: Connection | undefined;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  readonly #env: Record<string, string>;

  private constructor(clock: ManualClock, simulator: Simulator, options: SupervisorHarnessOptions) {
    const { sync, refreshSeconds = 30, maxRequestsPerSecond = 0, confirmEvery = 3600 } = options;
    this.clock = clock;
    this.simulator = simulator;
    this.path = join(temporaryFolder(), "mds.sqlite");
    copyEmptyWarehouse(this.path, viewsBesideSync);
    this.#env = { ...serviceEnv(simulator), MDS_WAREHOUSE: this.path };
    const defaults = loadSettings({ env: this.#env, directory: temporaryFolder() });
    const settings = toSyncSettings(options.mustRepeatClaims ? defaults : acceptAtOnce(defaults));
    const streams = { ...settings.streams, ...nothing, ...sync };
    this.settings = { ...settings, refreshSeconds, maxRequestsPerSecond, confirmEvery, streams };
  }

  static async start(options: SupervisorHarnessOptions): Promise<SupervisorHarness> {
    const clock = new ManualClock(options.start ?? "2026-03-01T02:00:07Z", options.creepMs);
    const { refreshSeconds = 30 } = options;
    const quirks = { ...youngMarket, ...options.simulator?.quirks };
    const simulator = await startSimulator({ clock, refreshSeconds, ...options.simulator, quirks });
    const harness = new SupervisorHarness(clock, simulator, options);
    onTestFinished(async () => {
      await harness.stop();
      await simulator.stop();
      expectSoundFile(harness.path, clock.now());
      expect(harness.failures).toEqual([]);
    });
    await harness.#start();
    return harness;
  }

  async #start(): Promise<void> {
    const { clock } = this;
    const record = (fields: Record<string, unknown>, message: string) =>
      void this.logged.push({ fields, message });
    const log: Log = { debug: () => {}, info: record, warn: record, error: record };
    const random = seededRandom(seed);
    const stats = new RunStats();
    const service = requireServiceSettings(loadSettings({ env: this.#env, directory: temporaryFolder() }));
    const client = createServiceClient({
      ...service,
      maxRequestsPerSecond: this.settings.maxRequestsPerSecond,
      clock,
      random,
      log,
      onEvent: (event) => stats.onEvent(event),
    });
    const { secrets } = client;
    const ingest = await new IngestThread({
      ...{ path: this.path, clock, serviceNow: () => client.server.now(), log, secrets },
      startWorker: startIngestInProcess,
    }).start();
    const reader = openReader(this.path);
    const { settings } = this;
    const { signal } = this.#stop;
    const context = { client, ingest, reader, settings, clock, random, log, stats, signal };
    this.supervisor = new SyncSupervisor(context, {
      wsUrl: service.wsUrl,
      onFailure: (_, error) => void this.failures.push(error),
      onProblems: (part, problems) => {
        this.problems.set(part, problems);
        this.reportedParts.push(part);
      },
      onActivity: (activity) => {
        this.activity = activity;
      },
      onFilled: () => {
        this.isFilled = true;
      },
      onLiveCommit: () => {},
      onFeedMessage: () => {},
    });
    const run = this.supervisor.run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.failures.push(error);
    });
    this.#running = run.then(async () => {
      reader.close();
      await client.close();
      await ingest.close();
    });
  }

  /** Lets simulated time pass. */
  async advance(seconds: number): Promise<void> {
    await this.clock.runUntil(this.clock.sleep(seconds * 1000));
  }

  /** Lets simulated time pass until the condition holds. */
  async runUntil(condition: () => boolean, maxSeconds = 3600, step = 1): Promise<void> {
    for (let waited = 0; !condition(); waited += step) {
      if (waited > maxSeconds) throw new Error(`condition not met within ${maxSeconds} s: ${condition}`);
      await this.advance(step);
    }
  }

  /** Waits until all gaps are filled and the heads are settled as far as possible. */
  async runUntilSettled(): Promise<void> {
    await this.runUntil(() => this.isFilled);
    await this.advance(4 * this.settings.refreshSeconds);
  }

  query(sql: string, parameters: Record<string, unknown> = {}): QueryRow[] {
    // Opening a file takes longer than most queries: tests that poll keep it open.
    this.#queryReader ??= openReader(this.path);
    return this.#queryReader.statement<QueryRow>(sql).all(parameters);
  }

  /** Reads the view `gaps` with the manual clock instead of SQLite's. */
  readGaps(where = "1"): QueryRow[] {
    const nowMs = this.clock.now();
    return this.query(
      `SELECT stream, name, state, reason, (@now - from_ts) / 1000000 AS age, (to_ts - from_ts) / 1000000 AS seconds
        FROM ${gapsAt((sql) => this.query(sql), nowMs)} WHERE ${where} ORDER BY stream, name, from_ts`,
      { now: Math.floor(nowMs) * MICROS_PER_MS },
    );
  }

  /** The requests to an endpoint, without the first `from` requests of all. */
  requestsTo(endpoint: string, from = 0): { readonly target: string; readonly at: number }[] {
    return this.simulator.requests.list
      .slice(from)
      .filter(({ target }) => target.startsWith(`/v3${endpoint}?`) || target === `/v3${endpoint}`);
  }

  get requestCount(): number {
    return this.simulator.requests.list.length;
  }

  /** Compares the warehouse with the service; the ledger must be settled up to `asOfMs`. */
  expectMatchesService(asOfMs: number) {
    return withReader(this.path, (reader) =>
      expectWarehouseMatches(reader, this.simulator, this.clock.now(), asOfMs * MICROS_PER_MS),
    );
  }

  async stop(): Promise<void> {
    this.#queryReader?.close();
    this.#queryReader = undefined;
    this.#stop.abort();
    await this.clock.runUntil(this.#running);
  }
}
